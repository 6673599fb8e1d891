// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package policies tests the admission policies of package/platform.yaml, and the
// rights of members, on a real API server.
package policies

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/test/outside"
)

const (
	// onlyThese claims are the provider's to create.
	onlyThese = "the provider may create only empty volume claims for the write-ahead log of a member, and claims of its data that are filled from a snapshot"

	namespace = "shop"
	scope     = "orders-db-3f2a9c1b"
)

// A place is an API server with the policies.
type place struct {
	config *rest.Config
	scheme *runtime.Scheme
	admin  client.Client
}

func TestPolicies(t *testing.T) {
	p := newPlace(t)
	member := p.as(t, "system:serviceaccount:shop:orders-db-members")
	stranger := p.as(t, "system:serviceaccount:shop:team-members")
	provider := p.as(t, "system:serviceaccount:crossplane-system:provider-capstan")
	activator := p.as(t, "system:serviceaccount:shop:reco-activator")
	snapshotter := p.as(t, "system:serviceaccount:shop:orders-db-snapshots")
	collector := p.as(t, "system:serviceaccount:kube-system:generic-garbage-collector")

	for name, tc := range map[string]struct {
		reason string
		do     func(context.Context) error
		want   string
	}{
		"ActivatorSaysThatARequestWaits": {
			reason: "That wakes the Algorithm.",
			do:     p.reports(activator, analysis("reco"), `{"status":{"atProvider":{"requested":"now"}}}`),
		},
		"ActivatorAtFirst": {
			reason: "The provider may not have looked yet.",
			do:     p.reports(activator, nothingSeen("new"), `{"status":{"atProvider":{"requested":"now"}}}`),
		},
		"ActivatorForges": {
			reason: "Evidence is the provider's.",
			do:     p.reports(activator, analysis("forged"), `{"status":{"atProvider":{"requested":"now","server":"vLLM"}}}`),
			want:   "an activator may write only status.atProvider.requested of an Analysis",
		},
		"ActivatorAdds": {
			reason: "Also where there is none yet.",
			do:     p.reports(activator, analysis("added"), `{"status":{"atProvider":{"idleSince":"2026-11-20T12:00:00Z"}}}`),
			want:   "an activator may write only status.atProvider.requested of an Analysis",
		},
		"ActivatorForgets": {
			reason: "To remove evidence is to forge it.",
			do:     p.reports(activator, analysis("emptied"), `{"status":{"atProvider":{"server":null}}}`),
			want:   "an activator may write only status.atProvider.requested of an Analysis",
		},
		"ProviderReports": {
			reason: "Others are not concerned.",
			do:     p.reports(p.admin, analysis("reported"), `{"status":{"atProvider":{"server":"vLLM"}}}`),
		},
		"DeleteProtected": {
			reason: "A Database that says nothing is protected.",
			do:     p.deletes(database("protected", nil)),
			want:   "Database protected is protected from deletion: set spec.deletionProtection to false first. Its volumes stay either way",
		},
		"DeleteProtectedExplicitly": {
			reason: "And so is one that says so.",
			do:     p.deletes(database("explicit", true)),
			want:   "Database explicit is protected from deletion: set spec.deletionProtection to false first. Its volumes stay either way",
		},
		"DeleteUnprotected": {
			reason: "One whose protection is off goes.",
			do:     p.deletes(database("open", false)),
		},
		"DeleteVolume": {
			reason: "A volume of a Database stays unless an annotation names it.",
			do:     p.deletes(volume("data-orders-db-a-0", ours(), nil)),
			want: "data-orders-db-a-0 holds data or passwords of Database orders-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=data-orders-db-a-0",
		},
		"DeleteReleasedVolume": {
			reason: "With the annotation it goes.",
			do:     p.deletes(volume("data-orders-db-b-0", ours(), release("data-orders-db-b-0"))),
		},
		"DeleteVolumeReleasedForAnother": {
			reason: "An annotation that names another volume releases nothing.",
			do:     p.deletes(volume("data-orders-db-c-0", ours(), release("data-orders-db-b-0"))),
			want: "data-orders-db-c-0 holds data or passwords of Database orders-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=data-orders-db-c-0",
		},
		"CollectBackups": {
			reason: "A volume of backups goes with what owns it.",
			do:     p.deletesAs(collector, backups("data-orders-db-repository-0", "orders-db", "orders-db-repository")),
		},
		"CollectUnownedBackups": {
			reason: "And stays when nothing does.",
			do:     p.deletesAs(collector, backups("data-kept-db-repository-0", "kept-db", "")),
			want: "data-kept-db-repository-0 holds data or passwords of Database kept-db.repository: to delete it for good, " +
				"annotate it first with capstan.dev/release=data-kept-db-repository-0",
		},
		"CollectBackupsOfAnother": {
			reason: "Or when something else does.",
			do:     p.deletesAs(collector, backups("data-other-db-repository-0", "other-db", "orders-db-repository")),
			want: "data-other-db-repository-0 holds data or passwords of Database other-db.repository: to delete it for good, " +
				"annotate it first with capstan.dev/release=data-other-db-repository-0",
		},
		"DeleteOwnedBackups": {
			reason: "Nobody else deletes them.",
			do:     p.deletes(backups("data-last-db-repository-0", "last-db", "last-db-repository")),
			want: "data-last-db-repository-0 holds data or passwords of Database last-db.repository: to delete it for good, " +
				"annotate it first with capstan.dev/release=data-last-db-repository-0",
		},
		"CollectVolumeOfPreview": {
			reason: "The volume of a Preview goes with the member that owns it.",
			do:     p.deletesAs(collector, previewed("data-pr-1-db-a-0", "pr-1-db-a", "pr-1-db-a", "pr-1")),
		},
		"CollectVolumeWithoutLabel": {
			reason: "One without the label does not, whatever owns it.",
			do:     p.deletesAs(collector, previewed("data-old-db-a-0", "old-db-a", "old-db-a", "")),
			want: "data-old-db-a-0 holds data or passwords of Database old-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=data-old-db-a-0",
		},
		"CollectVolumeOfAnotherMember": {
			reason: "Nor one that something else owns.",
			do:     p.deletesAs(collector, previewed("data-pr-2-db-a-0", "pr-2-db-a", "other", "pr-2")),
			want: "data-pr-2-db-a-0 holds data or passwords of Database pr-2-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=data-pr-2-db-a-0",
		},
		"DeleteVolumeOfPreview": {
			reason: "Nobody else deletes it.",
			do:     p.deletes(previewed("data-pr-3-db-a-0", "pr-3-db-a", "pr-3-db-a", "pr-3")),
			want: "data-pr-3-db-a-0 holds data or passwords of Database pr-3-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=data-pr-3-db-a-0",
		},
		"LabelVolume": {
			reason: "No volume becomes one of a Preview.",
			do: p.changes(p.admin, volume("data-orders-db-z-0", ours(), nil), func(o client.Object) {
				o.SetLabels(with(ours(), "capstan.dev/preview", "pr-1"))
			}),
			want: "the labels capstan.dev/database, capstan.dev/identity and capstan.dev/preview of data-orders-db-z-0 identify its data: " +
				"to change them, annotate it first with capstan.dev/release=data-orders-db-z-0",
		},
		"ProviderDeletesSecretOfPreview": {
			reason: "The Secrets of a Preview go with it.",
			do:     p.deletesAs(provider, secret("pr-1-db-access", with(ours(), "capstan.dev/preview", "pr-1"))),
		},
		"ProviderDeletesSecret": {
			reason: "No other does.",
			do:     p.deletesAs(provider, secret("orders-db-app", ours())),
			want: "orders-db-app holds data or passwords of Database orders-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=orders-db-app",
		},
		"DeleteSecretOfPreview": {
			reason: "And nobody else deletes it.",
			do:     p.deletes(secret("pr-2-db-access", with(ours(), "capstan.dev/preview", "pr-2"))),
			want: "pr-2-db-access holds data or passwords of Database orders-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=pr-2-db-access",
		},
		"DeleteOtherVolume": {
			reason: "Volumes of others are nobody's business.",
			do:     p.deletes(volume("scratch", nil, nil)),
		},
		"DeleteSecret": {
			reason: "A Secret that opens a Database stays, too.",
			do:     p.deletes(secret("orders-db-access", ours())),
			want: "orders-db-access holds data or passwords of Database orders-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=orders-db-access",
		},
		"DeleteOtherSecret": {
			reason: "Secrets of others go.",
			do:     p.deletes(secret("other", nil)),
		},
		"UnlabelVolume": {
			reason: "A volume cannot lose the label that guards it.",
			do: p.changes(p.admin, volume("data-orders-db-d-0", ours(), nil), func(o client.Object) {
				o.SetLabels(map[string]string{"capstan.dev/identity": "0123"})
			}),
			want: "the labels capstan.dev/database, capstan.dev/identity and capstan.dev/preview of data-orders-db-d-0 identify its data: " +
				"to change them, annotate it first with capstan.dev/release=data-orders-db-d-0",
		},
		"RelabelIdentity": {
			reason: "Nor become that of another Database.",
			do: p.changes(p.admin, volume("data-orders-db-e-0", ours(), nil), func(o client.Object) {
				o.SetLabels(with(ours(), "capstan.dev/identity", "9999"))
			}),
			want: "the labels capstan.dev/database, capstan.dev/identity and capstan.dev/preview of data-orders-db-e-0 identify its data: " +
				"to change them, annotate it first with capstan.dev/release=data-orders-db-e-0",
		},
		"AnnotateVolume": {
			reason: "All else of it may change.",
			do: p.changes(p.admin, volume("data-orders-db-f-0", ours(), nil), func(o client.Object) {
				o.SetAnnotations(map[string]string{"note": "kept"})
			}),
		},
		"ProviderGrowsVolume": {
			reason: "The provider lets a volume of a Database grow.",
			do:     p.resizes(provider, volume("data-orders-db-g-0", ours(), nil), "5Gi", "8Gi"),
		},
		"ProviderShrinksVolume": {
			reason: "And never asks for less, which the API server allows as long as it is not there.",
			do:     p.resizes(provider, volume("data-orders-db-h-0", ours(), nil), "5Gi", "3Gi"),
			want:   "the provider may not lower the requested size of a volume claim",
		},
		"ProviderLabelsVolume": {
			reason: "It changes nothing else of it.",
			do: p.changes(provider, volume("data-orders-db-i-0", ours(), nil), func(o client.Object) {
				o.SetLabels(with(ours(), "team", "x"))
			}),
			want: "the provider may change only the requested size of a volume claim",
		},
		"ProviderReleasesVolume": {
			reason: "Nor does it release it for deletion.",
			do: p.changes(provider, volume("data-orders-db-j-0", ours(), nil), func(o client.Object) {
				o.SetAnnotations(release("data-orders-db-j-0"))
			}),
			want: "the provider may change only the requested size of a volume claim",
		},
		"ProviderGrowsOtherVolume": {
			reason: "And volumes of others are nobody's business.",
			do:     p.resizes(provider, volume("scratch-2", nil, nil), "5Gi", "8Gi"),
			want:   "the provider may change only volume claims with the label capstan.dev/database",
		},
		"ProviderMakesVolumeForLog": {
			reason: "It makes the volume for a member's write-ahead log.",
			do:     p.creates(provider, volume("wal-orders-db-a-0", logOf("orders-db-a"), nil)),
		},
		"ProviderMakesVolumeForData": {
			reason: "And no other: an empty volume of data would keep a member from its own.",
			do:     p.creates(provider, volume("data-orders-db-n-0", ours(), nil)),
			want:   onlyThese,
		},
		"ProviderFillsVolumeForData": {
			reason: "It makes the volume that a Database begins with from a snapshot.",
			do:     p.creates(provider, filled("data-orders-db-p-0", "orders-db-p", "VolumeSnapshot")),
		},
		"ProviderCopiesVolume": {
			reason: "And from nothing else: a claim would be a copy of anybody's volume.",
			do:     p.creates(provider, filled("data-orders-db-q-0", "orders-db-q", "PersistentVolumeClaim")),
			want:   onlyThese,
		},
		"ProviderFillsVolumeOfAnotherMember": {
			reason: "Its name says whose it is.",
			do:     p.creates(provider, filled("data-orders-db-r-0", "orders-db-s", "VolumeSnapshot")),
			want:   onlyThese,
		},
		"Snapshot": {
			reason: "A pod makes snapshots of its Database.",
			do:     p.creates(snapshotter, snapshot("one", "orders-db", "data-orders-db-a-0")),
		},
		"SnapshotOfAnotherVolume": {
			reason: "And of no other volume of the namespace.",
			do:     p.creates(snapshotter, snapshot("two", "orders-db", "data-ledger-a-0")),
			want:   "only volumes of data of Database orders-db may be in its snapshots",
		},
		"SnapshotOfALongerName": {
			reason: "The volume belongs to a Database whose name begins in the same way.",
			do:     p.creates(snapshotter, snapshot("longer", "orders-db", "data-orders-db-eu-a-0")),
			want:   "only volumes of data of Database orders-db may be in its snapshots",
		},
		"SnapshotOfAGeneration": {
			reason: "After an upgrade the members have other names.",
			do:     p.creates(snapshotter, snapshot("generation", "orders-db", "data-orders-db-g2-b-0")),
		},
		"SnapshotForAnother": {
			reason: "It must not look like a snapshot of another Database.",
			do:     p.creates(snapshotter, snapshot("three", "ledger", "data-orders-db-a-0")),
			want:   "only snapshots with the label capstan.dev/snapshot-of=orders-db belong to Database orders-db",
		},
		"SnapshotExpires": {
			reason: "It removes its own.",
			do:     p.deletesAs(snapshotter, snapshot("four", "orders-db", "data-orders-db-a-0")),
		},
		"SnapshotOfAnotherExpires": {
			reason: "And no others.",
			do:     p.deletesAs(snapshotter, snapshot("five", "ledger", "data-ledger-a-0")),
			want:   "only snapshots with the label capstan.dev/snapshot-of=orders-db belong to Database orders-db",
		},
		"SnapshotTakenOver": {
			reason: "Nor does it make another's its own.",
			do: p.changes(snapshotter, snapshot("six", "ledger", "data-ledger-a-0"), func(o client.Object) {
				o.SetLabels(map[string]string{"capstan.dev/snapshot-of": "orders-db"})
			}),
			want: "only snapshots with the label capstan.dev/snapshot-of=orders-db belong to Database orders-db",
		},
		"SnapshotRecorded": {
			reason: "It writes how that went.",
			do: p.changes(snapshotter, configMap("orders-db-snapshots", "orders-db"), func(o client.Object) {
				o.SetAnnotations(map[string]string{"x": "y"})
			}),
		},
		"SnapshotConfigures": {
			reason: "And no other ConfigMap.",
			do: p.changes(snapshotter, configMap("orders-db-settings", "orders-db"), func(o client.Object) {
				o.SetAnnotations(map[string]string{"x": "y"})
			}),
			want: "only ConfigMap orders-db-snapshots says how snapshots went",
		},
		"ProviderMakesVolumeOfAnotherMember": {
			reason: "Its name says whose it is.",
			do:     p.creates(provider, volume("data-orders-db-o-0", logOf("orders-db-o"), nil)),
			want:   onlyThese,
		},
		"ProviderTakesOverVolume": {
			reason: "It gets nobody's data.",
			do: p.creates(provider, func() client.Object {
				o := volume("wal-orders-db-b-0", logOf("orders-db-b"), nil).(*corev1.PersistentVolumeClaim)
				o.Spec.VolumeName = "somebody-elses"
				return o
			}()),
			want: onlyThese,
		},
		"ProviderChoosesVolume": {
			reason: "Nor does it choose among volumes that are there.",
			do: p.creates(provider, func() client.Object {
				o := volume("wal-orders-db-d-0", logOf("orders-db-d"), nil).(*corev1.PersistentVolumeClaim)
				o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "another"}}
				return o
			}()),
			want: onlyThese,
		},
		"ProviderMakesOtherVolume": {
			reason: "Volumes of others are nobody's business.",
			do:     p.creates(provider, volume("scratch-3", nil, nil)),
			want:   "the provider may change only volume claims with the label capstan.dev/database",
		},
		"DeleteVolumeOfLog": {
			reason: "A volume for the write-ahead log stays like one of data.",
			do:     p.deletes(volume("wal-orders-db-c-0", logOf("orders-db-c"), nil)),
			want: "wal-orders-db-c-0 holds data or passwords of Database orders-db: to delete it for good, " +
				"annotate it first with capstan.dev/release=wal-orders-db-c-0",
		},
		"MemberLabelsItsPods": {
			reason: "A member tells its role on pods of its Database.",
			do: p.changes(member, pod("orders-db-a-0", "orders-db"), func(o client.Object) {
				o.SetLabels(with(o.GetLabels(), "capstan.dev/role", "leader"))
				o.SetAnnotations(map[string]string{"status": "{}"})
			}),
		},
		"MemberLabelsOtherPods": {
			reason: "And not on those of others.",
			do: p.changes(member, pod("web", ""), func(o client.Object) {
				o.SetLabels(map[string]string{"capstan.dev/role": "leader"})
			}),
			want: "a member of Database orders-db may change only objects with the label capstan.dev/database=orders-db",
		},
		"MemberTakesPodsOver": {
			reason: "It cannot make a pod its own.",
			do: p.changes(member, pod("web-2", ""), func(o client.Object) {
				o.SetLabels(map[string]string{"capstan.dev/database": "orders-db"})
			}),
			want: "a member of Database orders-db may change only objects with the label capstan.dev/database=orders-db",
		},
		"MemberOfLaterGenerationLabelsFormerLeader": {
			reason: "The generation that takes over takes the label from a leader that is lost.",
			do: p.changes(p.as(t, "system:serviceaccount:shop:orders-db.g2-members"), pod("orders-db-c-0", "orders-db"), func(o client.Object) {
				o.SetLabels(with(o.GetLabels(), "capstan.dev/role", "none"))
			}),
		},
		"MemberOfLaterGenerationDecidesFence": {
			reason: "Both generations decide in one object.",
			do: p.changes(p.as(t, "system:serviceaccount:shop:orders-db.g2-members"), configMap(scope+"-config", "orders-db"), func(o client.Object) {
				o.SetAnnotations(map[string]string{"capstan.dev/fence": "{}"})
			}),
		},
		"MemberOfLaterGenerationTakesLock": {
			reason: "The lock of another generation is not its own.",
			do: p.changes(p.as(t, "system:serviceaccount:shop:orders-db.g2-members"), configMap(scope+"-failover", "orders-db"), func(o client.Object) {
				o.SetAnnotations(map[string]string{"leader": "orders-db-g2-a-0"})
			}),
			want: "a member may write only the ConfigMaps with the state of its members",
		},
		"MemberLabelsPodsOfAnotherDatabase": {
			reason: "Another Database's members are others.",
			do: p.changes(member, pod("ledger-a-0", "ledger"), func(o client.Object) {
				o.SetLabels(with(o.GetLabels(), "capstan.dev/role", "leader"))
			}),
			want: "a member of Database orders-db may change only objects with the label capstan.dev/database=orders-db",
		},
		"MemberChangesImage": {
			reason: "Of a pod's spec an image may be changed by those who may change pods, but not by a member.",
			do: p.changes(member, pod("orders-db-b-0", "orders-db"), func(o client.Object) {
				o.(*corev1.Pod).Spec.Containers[0].Image = "evil"
			}),
			want: "a member may change only labels and annotations of pods",
		},
		"MemberMakesItsConfigMap": {
			reason: "Members keep their state so.",
			do:     p.creates(member, configMap(scope+"-leader", "orders-db")),
		},
		"MemberMakesOtherConfigMap": {
			reason: "Any other ConfigMap is none of theirs.",
			do:     p.creates(member, configMap("orders-db-members", "orders-db")),
			want:   "a member may write only the ConfigMaps with the state of its members",
		},
		"MemberOfMySQLMakesItsConfigMap": {
			reason: "Members of every engine keep their state so.",
			do:     p.creates(p.as(t, "system:serviceaccount:shop:shop-db-members"), configMap("shop-db-0a1b2c3d-leader", "shop-db")),
		},
		"MemberOfMySQLMakesOtherConfigMap": {
			reason: "The policy recognises members of every engine.",
			do:     p.creates(p.as(t, "system:serviceaccount:shop:shop-db-members"), configMap("shop-db-members", "shop-db")),
			want:   "a member may write only the ConfigMaps with the state of its members",
		},
		"MemberMakesUnlabelledConfigMap": {
			reason: "And neither is one without the label.",
			do:     p.creates(member, configMap(scope+"-sync", "")),
			want:   "a member of Database orders-db may change only objects with the label capstan.dev/database=orders-db",
		},
		"MemberChangesOtherConfigMap": {
			reason: "The configuration of other programs is not for members.",
			do: p.changes(member, configMap("web-config", ""), func(o client.Object) {
				o.(*corev1.ConfigMap).Data = map[string]string{"a": "b"}
			}),
			want: "a member of Database orders-db may change only objects with the label capstan.dev/database=orders-db",
		},
		"StrangerOfLikeName": {
			reason: "An account whose name ends alike and that is no member is not held to any of this.",
			do: p.changes(stranger, pod("web-3", ""), func(o client.Object) {
				o.SetLabels(map[string]string{"team": "x"})
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.do(t.Context())
			if diff := cmp.Diff(tc.want, denial(err)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// denial of a policy, or the whole error.
func denial(err error) string {
	if err == nil {
		return ""
	}

	if _, why, ok := strings.Cut(err.Error(), "denied request: "); ok {
		return why
	}

	return err.Error()
}

func newPlace(t *testing.T) *place {
	t.Helper()

	p := &place{config: outside.APIServer(t), scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extv1.AddToScheme} {
		if err := add(p.scheme); err != nil {
			t.Fatal(err)
		}
	}

	admin, err := client.New(p.config, client.Options{Scheme: p.scheme})
	if err != nil {
		t.Fatal(err)
	}

	p.admin = admin

	create := func(os ...client.Object) {
		for _, o := range os {
			if err := admin.Create(t.Context(), o); err != nil {
				t.Fatalf("cannot create %s: %v", o.GetName(), err)
			}
		}
	}

	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, databases(), volumeSnapshots())
	create(platform(t)...)
	create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "provider-capstan"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "capstan:provider"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "provider-capstan", Namespace: "crossplane-system"}},
	})
	create(bound("orders-db-members", "capstan:postgres-member", "ClusterRole"),
		bound("shop-db-members", "capstan:mysql-member", "ClusterRole"),
		bound("orders-db.g2-members", "capstan:postgres-member", "ClusterRole"),
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "labeller", Namespace: namespace},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "patch", "update"}}},
		},
		bound("team-members", "labeller", "Role"),
		bound("orders-db-snapshots", "capstan:snapshot", "ClusterRole"),
		bound("reco-activator", "capstan:activator", "ClusterRole"))
	p.users(t)

	p.await(t)

	return p
}

// await the policies: the API server compiles them some time after their creation.
func (p *place) await(t *testing.T) {
	t.Helper()

	try := 0
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		try++
		errs := []error{
			p.deletes(database("probe", true))(t.Context()),
			p.deletes(secret("probe", ours()))(t.Context()),
			p.creates(p.as(t, "system:serviceaccount:shop:orders-db-members"), configMap("probe", "orders-db"))(t.Context()),
			p.labels(p.as(t, "system:serviceaccount:crossplane-system:provider-capstan"), volume("probe", nil, nil))(t.Context()),
			p.creates(p.as(t, "system:serviceaccount:shop:orders-db-snapshots"), snapshot("probe", "ledger", ""))(t.Context()),
			p.reports(p.as(t, "system:serviceaccount:shop:reco-activator"), analysis("probe"), `{"status":{"atProvider":{"server":"x"}}}`)(t.Context()),
		}

		for _, probe := range p.probesOfOwners(t, try) {
			errs = append(errs, probe(t.Context()))
		}

		denied := 0

		for _, err := range errs {
			if denial(err) != "" && err.Error() != denial(err) {
				denied++
			}
		}

		if denied == len(errs) {
			return
		}
	}

	t.Fatal("the policies are not in force after 30 s")
}

// as an account, with its rights and no others.
func (p *place) as(t *testing.T, user string) client.Client {
	t.Helper()

	cfg := rest.CopyConfig(p.config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}

	c, err := client.New(cfg, client.Options{Scheme: p.scheme})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func (p *place) creates(c client.Client, o client.Object) func(context.Context) error {
	return func(ctx context.Context) error { return c.Create(ctx, o) }
}

// deletes an existing object.
func (p *place) deletes(o client.Object) func(context.Context) error { return p.deletesAs(p.admin, o) }

// deletesAs deletes an existing object as an account.
func (p *place) deletesAs(c client.Client, o client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		o.SetResourceVersion("")

		if err := client.IgnoreAlreadyExists(p.admin.Create(ctx, o)); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}

		return c.Delete(ctx, o)
	}
}

// changes an existing object by a merge patch, as an account.
func (p *place) changes(c client.Client, o client.Object, change func(client.Object)) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := p.admin.Create(ctx, o); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}

		before, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("no object")
		}

		change(o)

		return c.Patch(ctx, o, client.MergeFrom(before))
	}
}

// labels an object that may exist, as an account.
func (p *place) labels(c client.Client, o client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := client.IgnoreAlreadyExists(p.admin.Create(ctx, o)); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}

		return c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"probe":"x"}}}`)))
	}
}

// resizes a volume of 1Gi with a requested size, as an account.
func (p *place) resizes(c client.Client, o client.Object, from, to string) func(context.Context) error {
	return func(ctx context.Context) error {
		claim, ok := o.(*corev1.PersistentVolumeClaim)
		if !ok {
			return errors.New("no volume claim")
		}

		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows"}, Provisioner: "disks.example.org", AllowVolumeExpansion: new(true)}
		if err := client.IgnoreAlreadyExists(p.admin.Create(ctx, class)); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}

		claim.Spec.StorageClassName, claim.Spec.VolumeName = &class.Name, claim.Name
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(from)

		if err := p.admin.Create(ctx, claim); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}

		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}

		if err := p.admin.Status().Update(ctx, claim); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}

		before := claim.DeepCopy()
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(to)

		return c.Patch(ctx, claim, client.MergeFrom(before))
	}
}

// platform manifest, its part about members and policies.
func platform(t *testing.T) []client.Object {
	t.Helper()

	data, err := os.ReadFile(filepath.Join("..", "..", "package", "platform.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	var os []client.Object

	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))

	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return os
		}

		if err != nil {
			t.Fatal(err)
		}

		o := &unstructured.Unstructured{}
		if err := utilyaml.Unmarshal(doc, &o.Object); err != nil {
			t.Fatal(err)
		}

		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") || o.GetKind() == "ClusterRole" {
			os = append(os, o)
		}
	}
}

// volumeSnapshots as a kind, which CSI drivers bring.
func volumeSnapshots() *extv1.CustomResourceDefinition {
	return &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "volumesnapshots.snapshot.storage.k8s.io",
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, this is a test"},
		},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group: "snapshot.storage.k8s.io", Scope: extv1.NamespaceScoped,
			Names: extv1.CustomResourceDefinitionNames{Plural: "volumesnapshots", Singular: "volumesnapshot", Kind: "VolumeSnapshot", ListKind: "VolumeSnapshotList"},
			Versions: []extv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

// snapshot of a claim, for a Database.
func snapshot(name, of, claim string) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"capstan.dev/snapshot-of": of}},
		"spec":     map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}},
	}}
}

// filled volume of a member's data.
func filled(name, member, kind string) client.Object {
	labels := with(ours(), "capstan.dev/member", member)
	o, _ := volume(name, labels, nil).(*corev1.PersistentVolumeClaim)
	source := &corev1.TypedLocalObjectReference{Kind: kind, Name: "x"}
	if kind == "VolumeSnapshot" {
		source.APIGroup = new("snapshot.storage.k8s.io")
	}
	o.Spec.DataSource = source
	return o
}

// databases as a kind. Other tests check its schema.
func databases() *extv1.CustomResourceDefinition {
	return &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "databases.capstan.dev"},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group: "capstan.dev", Scope: extv1.NamespaceScoped,
			Names: extv1.CustomResourceDefinitionNames{Plural: "databases", Singular: "database", Kind: "Database", ListKind: "DatabaseList"},
			Versions: []extv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Subresources: &extv1.CustomResourceSubresources{Status: &extv1.CustomResourceSubresourceStatus{}},
				Schema:       &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

func nothingSeen(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "observe.capstan.dev/v1alpha1", "kind": "Analysis", "spec": map[string]any{"forProvider": map[string]any{"algorithm": name}},
	}}
	o.SetName(name)
	o.SetNamespace(namespace)

	return o
}

func analysis(name string) *unstructured.Unstructured {
	o := nothingSeen(name)
	o.Object["status"] = map[string]any{"atProvider": map[string]any{"server": "Triton"}}

	return o
}

// reports a change of the status of an existing Analysis as an account.
func (p *place) reports(c client.Client, o *unstructured.Unstructured, patch string) func(context.Context) error {
	return func(ctx context.Context) error {
		status := o.Object["status"]

		if err := client.IgnoreAlreadyExists(p.admin.Create(ctx, o)); err != nil {
			return errors.New("cannot prepare: " + err.Error())
		}

		if status != nil {
			raw, err := json.Marshal(map[string]any{"status": status})
			if err != nil {
				return errors.New("cannot prepare: " + err.Error())
			}

			if err := p.admin.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, raw)); err != nil {
				return errors.New("cannot prepare: " + err.Error())
			}
		}

		return c.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func bound(account, role, kind string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}},
	}
}

func database(name string, protection any) client.Object {
	spec := map[string]any{"engine": "postgres"}
	if protection != nil {
		spec["deletionProtection"] = protection
	}

	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "capstan.dev/v1alpha1", "kind": "Database", "spec": spec}}
	o.SetName(name)
	o.SetNamespace(namespace)

	return o
}

func volume(name string, labels, annotations map[string]string) client.Object {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: meta(name, labels, annotations),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// backups on a volume of a Database, owned by a StatefulSet or by none.
func backups(name, of, owner string) client.Object {
	o := volume(name, map[string]string{"capstan.dev/database": of + ".repository", "capstan.dev/identity": "repository", "capstan.dev/repository-of": of}, nil)
	if owner != "" {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, UID: "0123"}})
	}

	return o
}

// previewed volume of a member of a Preview's Database, with an owner.
func previewed(name, member, owner, preview string) client.Object {
	labels := map[string]string{"capstan.dev/database": strings.TrimSuffix(member, "-a"), "capstan.dev/identity": "0123", "capstan.dev/member": member}
	if preview != "" {
		labels["capstan.dev/preview"] = preview
	}
	o := volume(name, labels, nil)
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, UID: "0123"}})

	return o
}

func secret(name string, labels map[string]string) client.Object {
	return &corev1.Secret{ObjectMeta: meta(name, labels, nil)}
}

func configMap(name, of string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: meta(name, belongs(of), nil)}
}

func pod(name, of string) client.Object {
	return &corev1.Pod{ObjectMeta: meta(name, belongs(of), nil), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "postgres", Image: "postgres"}}}}
}

func meta(name string, labels, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels, Annotations: annotations}
}

func belongs(to string) map[string]string {
	if to == "" {
		return nil
	}

	return map[string]string{"capstan.dev/database": to}
}

// logOf a member: the labels of the volume for its write-ahead log.
func logOf(member string) map[string]string {
	return with(with(ours(), "capstan.dev/member", member), "capstan.dev/volume", "wal")
}

func ours() map[string]string {
	return map[string]string{"capstan.dev/database": "orders-db", "capstan.dev/identity": "0123"}
}

func release(name string) map[string]string { return map[string]string{"capstan.dev/release": name} }

func with(m map[string]string, k, v string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}

	out[k] = v

	return out
}
