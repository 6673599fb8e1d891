// SPDX-License-Identifier: Apache-2.0

//go:build integration

package registry_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
)

// The owners that an entry can have, seen from namespace shop.
const (
	nobody  = ""
	sibling = cluster + "/shop/other"
	foreign = cluster + "/pay/reco"
	abroad  = "another-cluster/shop/reco"
)

// TestWhoMay shows who may see, take and change entries of whom.
func TestWhoMay(t *testing.T) {
	adopting := func(mg resource.ModernManaged) {
		switch mg := mg.(type) {
		case *v1alpha1.RegisteredModel:
			mg.Spec.ForProvider.Adopt = true
		case *v1alpha1.ModelVersion:
			mg.Spec.ForProvider.Adopt = true
		case *v1alpha1.ModelAlias:
			mg.Spec.ForProvider.Adopt = true
		}
	}
	looking := policies(xpv2.ManagementActionObserve)
	model := func(edits ...edit) func(*bench, string) resource.ModernManaged {
		return func(b *bench, name string) resource.ModernManaged {
			return add(b, &v1alpha1.RegisteredModel{}, "shop", "reco", append(edits, external(name))...)
		}
	}
	version := func(edits ...edit) func(*bench, string) resource.ModernManaged {
		return func(b *bench, name string) resource.ModernManaged {
			return b.version("shop", "reco", name, "s3://models/1", edits...)
		}
	}
	alias := func(edits ...edit) func(*bench, string) resource.ModernManaged {
		return func(b *bench, name string) resource.ModernManaged {
			return b.aliased("shop", "reco", name, "champion", "2", edits...)
		}
	}
	testifying := func(mg resource.ModernManaged) { says(map[string]string{"a": "x"})(mg.(*v1alpha1.ModelAlias)) }
	ours := cluster + "/shop/reco"
	cases := map[string]struct {
		reason  string
		options []option

		// owners of the model, its version 1 and its alias champion, which points to version 1.
		model, version, alias string
		make                  func(*bench, string) resource.ModernManaged

		// want is the reason of Connected, or "" when all is well.
		want xpv2.ConditionReason

		// writes that reach the registry.
		writes []string
	}{
		"ModelOfNobody": {
			reason: "What exists is not taken without being asked.",
			make:   model(), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"ModelAdoptedWithoutConsent": {
			reason: "The platform does not allow it.",
			make:   model(adopting), want: apis.ReasonNameTaken,
		},
		"ModelAdopted": {
			reason: "Both sides agree.",
			make:   model(adopting), options: []option{adoption}, writes: []string{setTag},
		},
		"ModelAdoptedByOwn": {
			reason: "With a config of its own a namespace needs nobody's consent.",
			make:   model(adopting, own), writes: []string{setTag},
		},
		"ModelOfSibling": {
			reason: "Two managed resources do not share a model.",
			model:  sibling, make: model(adopting), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"ModelOfForeigner": {
			reason: "Another namespace's model is never taken.",
			model:  foreign, make: model(adopting), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"ModelOfForeignerWithOwn": {
			reason: "Not with a config of its own either.",
			model:  foreign, make: model(adopting, own), want: apis.ReasonNameTaken,
		},
		"ModelAbroad": {
			reason: "Another cluster's model is never taken.",
			model:  abroad, make: model(adopting), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"LookAtForeigners": {
			reason: "On shared ground nothing of others is seen.",
			model:  foreign, make: model(looking), options: []option{adoption}, want: apis.ReasonForbidden,
		},
		"LookAtNobodys": {
			reason: "What belongs to nobody is opened by the platform only.",
			make:   model(looking), want: apis.ReasonForbidden,
		},
		"LookAtNobodysAllowed": {
			reason: "The platform opens it.",
			make:   model(looking), options: []option{adoption},
		},
		"LookAtSiblings": {
			reason: "A namespace sees what is its own.",
			model:  sibling, make: model(looking),
		},
		"LookWithOwn": {
			reason: "With a config of its own a namespace sees what its credentials see.",
			model:  foreign, make: model(looking, own),
		},
		"VersionOfForeigners": {
			reason: "Nobody adds to another's model.",
			model:  foreign, make: version(), options: []option{adoption}, want: apis.ReasonForbidden,
		},
		"VersionOfNobodys": {
			reason: "Nobody adds to a model that is not opened.",
			make:   version(), want: apis.ReasonForbidden,
		},
		"VersionOfNobodysAllowed": {
			reason: "The platform opens it.",
			make:   version(), options: []option{adoption}, writes: []string{createVersion},
		},
		"VersionOfSiblings": {
			reason: "A namespace adds to its own models.",
			model:  sibling, make: version(), writes: []string{createVersion},
		},
		"VersionWithOwn": {
			reason: "With a config of its own a namespace adds wherever its credentials let it.",
			model:  foreign, make: version(own), writes: []string{createVersion},
		},
		"ImportOfNobodys": {
			reason: "A version that belongs to nobody is not taken without being asked.",
			model:  sibling, make: version(external("1")), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"Import": {
			reason: "A version is imported by its number.",
			model:  sibling, make: version(external("1"), adopting), options: []option{adoption},
			writes: []string{setVersionTag},
		},
		"ImportOfForeigners": {
			reason: "Another namespace's version is never taken.",
			model:  sibling, version: foreign, make: version(external("1"), adopting), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"ImportOfForeignersWithOwn": {
			reason:  "Not with a config of its own either.",
			version: foreign, make: version(external("1"), adopting, own), want: apis.ReasonNameTaken,
		},
		"ImportFromForeigners": {
			reason: "A number does not lead into another's model.",
			model:  foreign, make: version(external("1"), adopting), options: []option{adoption}, want: apis.ReasonForbidden,
		},
		"ObserveForeigners": {
			reason: "A number does not show another's version.",
			model:  foreign, make: version(external("1"), looking), options: []option{adoption}, want: apis.ReasonForbidden,
		},
		"ObserveSiblings": {
			reason: "A namespace sees versions of its own models, whosever they are.",
			model:  sibling, version: foreign, make: version(external("1"), looking),
		},
		"AliasOfForeigners": {
			reason: "Nobody moves another's alias.",
			model:  foreign, make: alias(adopting), options: []option{adoption}, want: apis.ReasonForbidden,
		},
		"AliasThere": {
			reason: "An alias that is there is not taken without being asked.",
			model:  sibling, make: alias(), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"AliasAdopted": {
			reason: "Both sides agree; then it is moved.",
			model:  sibling, make: alias(adopting), options: []option{adoption}, writes: []string{setTag, setAlias},
		},
		"AliasOfSibling": {
			reason: "Two managed resources do not fight for an alias.",
			model:  sibling, alias: sibling, make: alias(adopting), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"AliasOfForeignersWithOwn": {
			reason: "Another's alias is never moved.",
			model:  sibling, alias: foreign, make: alias(adopting, own), want: apis.ReasonNameTaken,
		},
		"AliasOurs": {
			reason: "What is ours is moved.",
			model:  sibling, alias: ours, make: alias(), writes: []string{setAlias},
		},
		"EvidenceInModelOfForeigners": {
			reason: "Nobody says anything of another's versions.",
			model:  foreign, make: alias(adopting, testifying), options: []option{adoption}, want: apis.ReasonForbidden,
		},
		"EvidenceInModelOfNobody": {
			reason: "Nobody says anything of what is not opened.",
			make:   alias(adopting, testifying), want: apis.ReasonForbidden,
		},
		"EvidenceOfAliasThere": {
			reason: "Who does not own the alias says nothing for it.",
			model:  sibling, make: alias(testifying), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"EvidenceOfAliasOfSibling": {
			reason: "Nor of his sibling's.",
			model:  sibling, alias: sibling, make: alias(adopting, testifying), options: []option{adoption}, want: apis.ReasonNameTaken,
		},
		"EvidenceOfAliasOfForeignersWithOwn": {
			reason: "Nor with a config of its own.",
			model:  sibling, alias: foreign, make: alias(adopting, testifying, own), want: apis.ReasonNameTaken,
		},
		"EvidenceAdopted": {
			reason: "Who takes the alias over has its say, after that.",
			model:  sibling, make: alias(adopting, testifying), options: []option{adoption},
			writes: []string{setTag, setVersionTag, setAlias},
		},
		"EvidenceOurs": {
			reason: "What is ours speaks, of versions of others, too.",
			model:  sibling, version: foreign, alias: ours, make: alias(testifying), writes: []string{setVersionTag, setAlias},
		},
		"EvidenceOnlyLooks": {
			reason: "Who only looks says nothing.",
			model:  sibling, alias: ours, make: alias(testifying, looking),
		},
		"LookAtAliasOfForeigners": {
			reason: "Where another's alias points is not told.",
			model:  foreign, make: alias(looking), options: []option{adoption}, want: apis.ReasonForbidden,
		},
		"LookAtAlias": {
			reason: "A namespace sees aliases of its own models.",
			model:  sibling, alias: foreign, make: alias(looking),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, name := newBench(t, tc.options...), unique(t)
			b.make(name, "s3://models/1", "s3://models/2")
			b.alias(name, "champion", "1")
			for key, owner := range map[string]string{v1alpha1.TagOwner: tc.model, v1alpha1.TagAliasPrefix + "champion": tc.alias} {
				if owner != nobody {
					b.must(http.MethodPost, "registered-models/set-tag", fields{"name": name, "key": key, "value": owner})
				}
			}
			if tc.version != nobody {
				b.must(http.MethodPost, "model-versions/set-tag",
					fields{"name": name, "version": "1", "key": v1alpha1.TagOwner, "value": tc.version})
			}
			mg := tc.make(b, name)
			if tc.want == "" {
				b.settle(mg)
			} else {
				b.reconcile(mg)
				b.reconcile(mg)
			}
			c := mg.GetCondition(apis.TypeConnected)
			if tc.want != "" && c.Reason != tc.want || strings.Contains(c.Message, "pay") || strings.Contains(c.Message, cluster) {
				t.Errorf("\n%s\nwant %s and no name of others, got %s: %s", tc.reason, tc.want, c.Reason, c.Message)
			}
			if diff := cmp.Diff(append([]string{}, tc.writes...), b.writes()); diff != "" {
				t.Errorf("\n%s\nrequests that write: -want, +got:\n%s", tc.reason, diff)
			}
			if tc.want == apis.ReasonForbidden {
				if v, ok := mg.(*v1alpha1.ModelVersion); ok && v.Status.AtProvider.Source != "" {
					t.Errorf("\n%s\nNothing of it may be told, got %v", tc.reason, v.Status.AtProvider)
				}
			}

			// What is not ours survives our end, and does not hold it up.
			if tc.want == "" {
				return
			}
			change(b, mg, func(mg resource.ModernManaged) {
				mg.SetManagementPolicies(xpv2.ManagementPolicies{"*"})
				mg.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
			})
			b.gone(mg)
			if m := b.registered(name); m == nil || m.Alias("champion") != "1" || len(b.versions(name)) != 2 {
				t.Errorf("\n%s\nIt must stay, got %v", tc.reason, m)
			}
		})
	}
}

// TestForeignersInOurModel shows that a model stays in which another namespace has something.
func TestForeignersInOurModel(t *testing.T) {
	for name, tc := range map[string]func(*bench, string) resource.ModernManaged{
		"Version": func(b *bench, model string) resource.ModernManaged {
			return b.version("pay", model, model, "s3://pay/1", own)
		},
		"Alias": func(b *bench, model string) resource.ModernManaged {
			return b.aliased("pay", model, model, "champion", "1", own)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, name := newBench(t), unique(t)
			model := add(b, &v1alpha1.RegisteredModel{}, "shop", name, own, policies("*"))
			b.settle(model)
			b.must(http.MethodPost, "model-versions/create", fields{"name": name, "source": "s3://shop/1"})
			b.settle(tc(b, name))
			if err := b.Delete(t.Context(), model); err != nil {
				t.Fatal(err)
			}
			b.reconcile(model)
			if got := told(model, apis.TypeConnected); got != string(apis.ReasonNotEmpty) || b.registered(name) == nil {
				t.Errorf("The model must stay and say why, got %s", got)
			}
		})
	}
}

// TestSources shows that the config, and shared ground, narrow the sources of new versions before anything is sent.
func TestSources(t *testing.T) {
	cases := map[string]struct {
		reason string
		allow  []string
		source string
		own    bool
		want   string
	}{
		"Anything":     {reason: "Nothing is narrowed.", source: "s3://any/where"},
		"Below":        {reason: "It begins with what is allowed.", allow: []string{"s3://models/"}, source: "s3://models/reco/1"},
		"Beside":       {reason: "It only looks like it.", allow: []string{"s3://models"}, source: "s3://models-of-others/1", want: "none of the sources"},
		"OthersModel":  {reason: "The registry would hand out another's files.", source: "models:/other/1", want: "other entries"},
		"ModelAllowed": {reason: "With an own config the credentials decide.", own: true, source: "runs:/5c3a/model"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, name := newBench(t, sources(tc.allow...)), unique(t)
			b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
			b.proxy.Reset()
			cr := b.version("shop", name, name, tc.source)
			if tc.own {
				change(b, cr, func(cr *v1alpha1.ModelVersion) { own(cr) })
			}
			if tc.want == "" {
				b.settle(cr)
				return
			}
			b.reconcile(cr)
			b.reconcile(cr)
			if got := cr.GetCondition(xpv2.TypeSynced).Message; !strings.Contains(got, tc.want) || len(b.writes()) > 0 {
				t.Errorf("\n%s\nwant %q and nothing sent, got %q, %v", tc.reason, tc.want, got, b.writes())
			}
		})
	}
}

// TestLeftOut shows that an empty description is one, and one that is left out is none.
func TestLeftOut(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.must(http.MethodPost, "registered-models/create", fields{"name": name, "description": "theirs"})
	cr := add(b, &v1alpha1.RegisteredModel{}, "shop", name, own, func(mg resource.ModernManaged) {
		mg.(*v1alpha1.RegisteredModel).Spec.ForProvider.Adopt = true
	})
	b.settle(cr)
	if got := b.registered(name).Description; got != "theirs" {
		t.Errorf("What was left out must stay, got %q", got)
	}
	change(b, cr, func(cr *v1alpha1.RegisteredModel) { cr.Spec.ForProvider.Description = new("") })
	b.settle(cr)
	if got := b.registered(name).Description; got != "" {
		t.Errorf("An empty one is wanted, got %q", got)
	}
}
