// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	crossplane = "system:serviceaccount:crossplane-system:crossplane"
	provider   = "system:serviceaccount:crossplane-system:provider-capstan"
	tenant     = "ana"
)

// TestOwners of statuses, of objects that others made, of definitions, and of passwords.
func TestOwners(t *testing.T) {
	p := newPlace(t)
	for name, tc := range map[string]struct {
		reason string
		do     func(*testing.T) error
		want   string
	}{
		"TenantForgesEvidence": {
			reason: "A right to write statuses in a namespace, as Crossplane's own sample role gives, is no right to forge evidence.",
			do:     p.forges(tenant, analysis("evidence")),
			want:   "only Crossplane and the provider write the status of Analysis evidence: they would undo what is written by hand",
		},
		"TenantForgesStatusOfDatabase": {
			reason: "What Crossplane reports is for Crossplane to write.",
			do:     p.forges(tenant, database("forged", true)),
			want:   "only Crossplane and the provider write the status of Database forged: they would undo what is written by hand",
		},
		"NamespaceAdministratorForges": {
			reason: "All rights in a namespace do not include it.",
			do:     p.forges("root-of-shop", analysis("local")),
			want:   "only Crossplane and the provider write the status of Analysis local: they would undo what is written by hand",
		},
		"ProviderReports":   {"It is its work.", p.forges(provider, analysis("looked")), ""},
		"CrossplaneReports": {"It is its work.", p.forges(crossplane, database("composed", true)), ""},
		"OperatorRepairs":   {"Who has the right writeStatus may.", p.forges("rescuer", analysis("repaired")), ""},
		"AdministratorRepairs": {
			reason: "A cluster administrator has every right.",
			do: func(t *testing.T) error {
				t.Helper()
				return p.reports(p.admin, analysis("rescued"), report)(t.Context())
			},
		},
		"AnotherProvidersAccount": {
			reason: "Its name begins alike, and that is all.",
			do:     p.forges(provider+"-2", analysis("alike")),
			want:   "only Crossplane and the provider write the status of Analysis alike: they would undo what is written by hand",
		},

		"TakeDefaultDeny": {
			reason: "An Algorithm that is named like the namespace's policy would switch it off.",
			do:     p.takes(crossplane, defaultDeny("default-deny", nil, nil), nil),
			want: "NetworkPolicy default-deny exists, and Algorithm default-deny did not make it: rename one of the two, " +
				"or hand it over with the annotation capstan.dev/adopt=default-deny",
		},
		"TakeService": {
			reason: "A Service of another release would lose its pods.",
			do:     p.takes(crossplane, service("reco", map[string]string{"app.kubernetes.io/managed-by": "Helm"}), nil),
			want: "Service reco exists, and Algorithm reco did not make it: rename one of the two, " +
				"or hand it over with the annotation capstan.dev/adopt=reco",
		},
		"TakeVolume": {
			reason: "A volume claim would be deleted with the Algorithm.",
			do:     p.takes(crossplane, volume("reco-models", nil, nil), nil),
			want: "PersistentVolumeClaim reco-models exists, and Algorithm reco-models did not make it: rename one of the two, " +
				"or hand it over with the annotation capstan.dev/adopt=reco-models",
		},
		"TakeWithConsentForAnother": {
			reason: "Consent that was copied from another object is none.",
			do:     p.takes(crossplane, defaultDeny("copied", nil, adopts("other")), nil),
			want: "NetworkPolicy copied exists, and Algorithm copied did not make it: rename one of the two, " +
				"or hand it over with the annotation capstan.dev/adopt=copied",
		},
		"TakeAnothersLeftovers": {
			reason: "What another Algorithm left is not this one's.",
			do:     p.takes(crossplane, defaultDeny("left", map[string]string{"crossplane.io/composite": "reco"}, nil), nil),
			want: "NetworkPolicy left exists, and Algorithm left did not make it: rename one of the two, " +
				"or hand it over with the annotation capstan.dev/adopt=left",
		},
		"TakeCompositeOfTheSameName": {
			reason: "Every composite resource has its own name as that mark, which says nothing of who made it.",
			do: func(t *testing.T) error {
				t.Helper()
				o := database("same", nil)
				o.SetLabels(map[string]string{"crossplane.io/composite": "same"})
				return p.takes(crossplane, o, nil)(t)
			},
			want: "Database same exists, and Algorithm same did not make it: rename one of the two, " +
				"or hand it over with the annotation capstan.dev/adopt=same",
		},
		"TakeWithConsent": {"The annotation is the consent.", p.takes(crossplane, defaultDeny("given", nil, adopts("given")), nil), ""},
		"TakeWhatIsOwned": {
			"What has the owner already is changed as ever, also by a newer version.",
			p.takes(crossplane, defaultDeny("owned", nil, nil), owner("owned")), "",
		},
		"TakeBackWhatWasOrphaned": {
			"It has the mark of the same Algorithm: it was orphaned, or restored from a backup without its owner.",
			p.takes(crossplane, defaultDeny("orphan", map[string]string{"crossplane.io/composite": "orphan"}, nil), nil), "",
		},
		"OthersTake": {"The policy is about Crossplane only.", p.takes("rescuer", defaultDeny("outer", nil, nil), nil), ""},

		"DeleteDefinition": {
			reason: "The API server would delete all instances of the kind without asking any policy.",
			do:     p.drops("widgets.capstan.dev", false),
			want: "to delete widgets.capstan.dev is to delete every object of this kind, protected or not: remove the packages as docs/install.md says, " +
				"or annotate it first with capstan.dev/release=widgets.capstan.dev",
		},
		"DeleteReleasedDefinition":  {"With the annotation it goes.", p.drops("gadgets.observe.capstan.dev", true), ""},
		"DeleteDefinitionOfOthers":  {"Others are not concerned.", p.drops("widgets.notcapstan.dev", false), ""},
		"CrossplaneDropsDefinition": {"It deletes the instances first, and waits for them.", p.dropsAs(crossplane, "things.capstan.dev"), ""},
		"CollectorDropsADefinition": {"It goes with its package.", p.dropsAs(collector, "parts.storage.capstan.dev"), ""},
		"EmptyPassword":             {"A password that is gone locks everybody out.", p.rewrites(p.admin, "emptied", nil), emptied("emptied", "password")},
		"EmptyPasswordToNothing":    {"An empty one is none.", p.rewrites(p.admin, "blanked", map[string][]byte{"password": {}}), emptied("blanked", "password")},
		"ChangePassword":            {"Another password is a password.", p.rewrites(p.admin, "changed", map[string][]byte{"password": []byte("new")}), ""},
		"EmptyPasswordByTheProvider": {"The provider knows what it does.", func(t *testing.T) error {
			t.Helper()
			return p.rewrites(p.as(t, provider), "rotated", nil)(t)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, denial(tc.do(t))); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

const (
	collector = "system:serviceaccount:kube-system:generic-garbage-collector"
	report    = `{"status":{"atProvider":{"server":"forged"}}}`
)

func emptied(name, key string) string {
	return fmt.Sprintf("%s holds passwords of Database orders-db, and %s would be empty: to give it up for good, "+
		"annotate it first with capstan.dev/release=%s", name, key, name)
}

// forges a status as a user.
func (p *place) forges(user string, o client.Object) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return errors.New("no unstructured object")
		}
		return p.reports(p.as(t, user), u, report)(t.Context())
	}
}

// takes an object that somebody else made, as Crossplane applies what it composes.
func (p *place) takes(user string, o client.Object, before []metav1.OwnerReference) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		o.SetOwnerReferences(before)
		if err := p.admin.Create(t.Context(), o); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}
		gvk, err := p.admin.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		u.SetName(o.GetName())
		u.SetNamespace(o.GetNamespace())
		u.SetOwnerReferences(owner(o.GetName()))
		u.SetLabels(map[string]string{"crossplane.io/composite": o.GetName()})
		return p.as(t, user).Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner("crossplane/composed"))
	}
}

// drops a definition, as the administrator.
func (p *place) drops(name string, released bool) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		o := definition(name)
		if released {
			o.Annotations = release(name)
		}
		return p.deletesAs(p.admin, o)(t.Context())
	}
}

func (p *place) dropsAs(user, name string) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		return p.deletesAs(p.as(t, user), definition(name))(t.Context())
	}
}

// rewrites all content of a Secret with a generated password.
func (p *place) rewrites(c client.Client, name string, data map[string][]byte) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		s := &corev1.Secret{
			ObjectMeta: meta(name, ours(), map[string]string{"credentials.capstan.dev/generated": "password"}),
			Data:       map[string][]byte{"password": []byte("secret"), "username": []byte("orders")},
		}
		if err := p.admin.Create(t.Context(), s); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}
		s.Data = data
		return c.Update(t.Context(), s)
	}
}

// users have the rights that Crossplane's roles or an administrator gave them.
func (p *place) users(t *testing.T) {
	t.Helper()
	all := []string{rbacv1.VerbAll}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"crossplane-edit": {{
			APIGroups: []string{"capstan.dev", "observe.capstan.dev"},
			Resources: []string{"databases", "databases/status", "analyses", "analyses/status"}, Verbs: all,
		}},
		"everything":           {{APIGroups: all, Resources: all, Verbs: all}},
		"capstan-write-status": {{APIGroups: []string{"capstan.dev"}, Resources: []string{"statuses"}, Verbs: []string{"write"}}},
	} {
		p.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	}
	p.create(t, inNamespace(tenant, "crossplane-edit"), inNamespace("root-of-shop", "everything"), inNamespace(provider+"-2", "crossplane-edit"))
	p.create(t, everywhere("provider", provider, "crossplane-edit"), everywhere("crossplane", crossplane, "everything"),
		everywhere("collector", collector, "everything"), inNamespace("rescuer", "everything"), everywhere("rescuer", "rescuer", "capstan-write-status"))
	p.create(t, inNamespaceAs("secrets", provider, "everything"))
}

func (p *place) create(t *testing.T, os ...client.Object) {
	t.Helper()
	for _, o := range os {
		if err := p.admin.Create(t.Context(), o); err != nil {
			t.Fatalf("cannot create %s: %v", o.GetName(), err)
		}
	}
}

func inNamespace(user, role string) client.Object { return inNamespaceAs(user, user, role) }

func inNamespaceAs(name, user, role string) client.Object {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

func everywhere(name, user, role string) client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

func owner(algorithm string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: "capstan.dev/v1alpha1", Kind: "Algorithm", Name: algorithm, UID: types.UID("0123"), Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

func adopts(name string) map[string]string { return map[string]string{"capstan.dev/adopt": name} }

func defaultDeny(name string, labels, annotations map[string]string) client.Object {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(name, labels, annotations),
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}},
	}
}

func service(name string, labels map[string]string) client.Object {
	return &corev1.Service{
		ObjectMeta: meta(name, labels, nil),
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "old"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// definition of a kind that is not Capstan's, in one of its groups or in another.
func definition(name string) *extv1.CustomResourceDefinition {
	d := databases()
	d.Name = name
	plural, group, _ := strings.Cut(name, ".")
	d.Spec.Group = group
	d.Spec.Names = extv1.CustomResourceDefinitionNames{Plural: plural, Singular: plural + "-one", Kind: "K" + plural, ListKind: "K" + plural + "List"}
	return d
}

// probesOfOwners are refused once the policies are in force.
func (p *place) probesOfOwners(t *testing.T, try int) []func(context.Context) error {
	t.Helper()
	name := fmt.Sprintf("probe-%d", try)
	return []func(context.Context) error{
		p.reports(p.as(t, tenant), analysis("probe"), report),
		func(context.Context) error { return p.takes(crossplane, defaultDeny(name, nil, nil), nil)(t) },
		func(context.Context) error { return p.drops(fmt.Sprintf("probes%d.capstan.dev", try), false)(t) },
	}
}
