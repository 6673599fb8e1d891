// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// TestChange follows a Secret through one change of it or of its Credential.
func TestChange(t *testing.T) {
	params := func(edit func(p *v1alpha1.CredentialParameters)) func(*bench) {
		return func(b *bench) { b.ask(edit) }
	}
	data := func(edit func(data map[string][]byte)) func(*bench) {
		return func(b *bench) {
			s := b.secret()
			edit(s.Data)
			b.change(s)
		}
	}
	cases := map[string]struct {
		reason string
		change func(*bench)
		// other keys than before, gone and made ones; all others have the same bytes.
		other, gone, made []string
		// says is part of what Synced tells, if it is not true.
		says string
	}{
		"LostDerived": {
			reason: "What was derived and lost is made again.",
			change: data(func(d map[string][]byte) { delete(d, "verifier"); delete(d, "hash") }),
			other:  []string{"hash", "verifier"},
		},
		"LostConnection": {
			reason: "What was rendered and lost is rendered again.",
			change: data(func(d map[string][]byte) { delete(d, "uri"); d["host"] = []byte("elsewhere") }),
		},
		"LostToken": {
			reason: "A generated value that was lost is not made again.",
			change: data(func(d map[string][]byte) { delete(d, "token") }),
			gone:   []string{"token"},
			says:   `secret "orders" has no "token" any more`,
		},
		"LostBesidesOthers": {
			reason: "While a value is lost nothing else is written.",
			change: data(func(d map[string][]byte) { delete(d, "token"); delete(d, "uri") }),
			gone:   []string{"token", "uri"},
			says:   `secret "orders" has no "token" any more`,
		},
		"PasswordByHand": {
			reason: "What depends on a password that a person has changed follows.",
			change: data(func(d map[string][]byte) { d["password"] = []byte("by-hand") }),
			other:  []string{"hash", "password", "uri", "verifier"},
		},
		"UnfitPasswordByHand": {
			reason: "What cannot be derived is gone, because the old one would mislead, and told.",
			change: data(func(d map[string][]byte) { d["password"] = []byte("von-Händen") }),
			other:  []string{"hash", "password", "uri"},
			gone:   []string{"verifier"},
			says:   `nothing can be derived from key "password" of Secret "orders": it must be of printable ASCII`,
		},
		"Host": {
			reason: "Another host is rendered, and no value changes.",
			change: params(func(p *v1alpha1.CredentialParameters) { p.Connection.Host = "db-2" }),
			other:  []string{"host", "jdbc-url", "uri"},
		},
		"Type": {
			reason: "Another type is rendered. The Secret's own type can never change.",
			change: params(func(p *v1alpha1.CredentialParameters) { p.Connection.Type = "redis" }),
			other:  []string{"type", "uri"},
			gone:   []string{"jdbc-url"},
		},
		"NoConnection": {
			reason: "A connection that nobody asks for goes.",
			change: params(func(p *v1alpha1.CredentialParameters) { p.Connection = nil }),
			gone:   []string{"database", "host", "jdbc-url", "port", "type", "uri", "username"},
		},
		"MoreIterations": {
			reason: "Another number of iterations makes another verifier.",
			change: params(func(p *v1alpha1.CredentialParameters) { p.Keys[0].Derive[0].Iterations = ptr.To[int32](5000) }),
			other:  []string{"verifier"},
		},
		"NoDerive": {
			reason: "What nobody wants derived any more goes.",
			change: params(func(p *v1alpha1.CredentialParameters) { p.Keys[0].Derive = p.Keys[0].Derive[:1] }),
			gone:   []string{"hash"},
		},
		"OtherShape": {
			reason: "Length and alphabet are of the next values.",
			change: params(func(p *v1alpha1.CredentialParameters) {
				p.Length, p.Alphabet = ptr.To[int32](99), v1alpha1.AlphabetPrintable
			}),
		},
		"MoreKeys": {
			reason: "A new key gets a value.",
			change: params(func(p *v1alpha1.CredentialParameters) { p.Keys = append(p.Keys, v1alpha1.Key{Name: "more"}) }),
			made:   []string{"more"},
		},
		"FewerKeys": {
			reason: "A generated value stays when its key is taken out: nothing could bring it back.",
			change: params(func(p *v1alpha1.CredentialParameters) { p.Keys = p.Keys[:1] }),
		},
		"PutBefore": {
			reason: "What a person has put under a new key is taken as it is.",
			change: func(b *bench) {
				data(func(d map[string][]byte) { d["more"] = []byte("precious") })(b)
				params(func(p *v1alpha1.CredentialParameters) { p.Keys = append(p.Keys, v1alpha1.Key{Name: "more"}) })(b)
			},
			made: []string{"more"},
		},
		"Foreign": {
			reason: "What somebody else has put there stays when nothing is asked for in its place.",
			change: data(func(d map[string][]byte) { d["note"] = []byte("precious") }),
			made:   []string{"note"},
		},
		"DerivedOverForeign": {
			reason: "What somebody else has put there is not written over, and told.",
			change: func(b *bench) {
				data(func(d map[string][]byte) { d["note"] = []byte("precious") })(b)
				params(func(p *v1alpha1.CredentialParameters) {
					p.Keys[1].Derive = []v1alpha1.Derivation{{Format: v1alpha1.FormatSCRAM, Key: "note"}}
				})(b)
			},
			made: []string{"note"},
			says: `secret "orders" has a key "note" that is not of this Credential`,
		},
		"DerivedOverGenerated": {
			reason: "A generated value that is asked for no more is not written over either.",
			change: params(func(p *v1alpha1.CredentialParameters) {
				p.Keys = p.Keys[:1]
				p.Keys[0].Derive[1].Key = "token"
			}),
			gone: []string{"hash"},
			says: `secret "orders" has a key "token" that is not of this Credential`,
		},
		"PreviousOverForeign": {
			reason: "A rotation waits for a key that somebody else has put where the previous value belongs.",
			change: func(b *bench) {
				data(func(d map[string][]byte) { d["password.previous"] = []byte("precious") })(b)
				params(func(p *v1alpha1.CredentialParameters) { p.Rotation = &v1alpha1.Rotation{ID: "now"} })(b)
			},
			made: []string{"password.previous"},
			says: `secret "orders" has a key "password.previous" that is not of this Credential`,
		},
		"GeneratedOverRendered": {
			reason: "What was rendered makes way for a value.",
			change: params(func(p *v1alpha1.CredentialParameters) {
				p.Keys[0].Derive = p.Keys[0].Derive[:1]
				p.Keys = append(p.Keys, v1alpha1.Key{Name: "hash"})
			}),
			other: []string{"hash"},
		},
		"LostRecord": {
			reason: "Without the record everything is recognised, and no value changes.",
			change: func(b *bench) {
				s := b.secret()
				s.Annotations = nil
				b.change(s)
			},
		},
		"SpoiltRecord": {
			reason: "A record that makes no sense is put right, and no value changes.",
			change: func(b *bench) {
				s := b.secret()
				s.Annotations[v1alpha1.AnnotationIdentity] = "me"
				s.Annotations[v1alpha1.AnnotationRotatedAt] = "yesterday"
				s.Annotations[v1alpha1.AnnotationGenerated] = ",,"
				b.change(s)
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			b.apply(everything())
			b.settle()
			was, id := b.secret(), b.credential().Status.AtProvider.Identity
			tc.change(b)
			b.settle()
			is, cr := b.secret(), b.credential()
			var other, gone, made []string
			for _, k := range slices.Sorted(maps.Keys(was.Data)) {
				switch v, ok := is.Data[k]; {
				case !ok:
					gone = append(gone, k)
				case !cmp.Equal(was.Data[k], v):
					other = append(other, k)
				}
			}
			for _, k := range slices.Sorted(maps.Keys(is.Data)) {
				if _, ok := was.Data[k]; !ok {
					made = append(made, k)
				}
			}
			for what, keys := range map[string][2][]string{"other": {tc.other, other}, "gone": {tc.gone, gone}, "made": {tc.made, made}} {
				if diff := cmp.Diff(keys[0], keys[1]); diff != "" {
					t.Errorf("\n%s\n%s keys: -want, +got:\n%s", tc.reason, what, diff)
				}
			}
			for _, k := range []string{"note", "password.previous"} {
				if v, ok := is.Data[k]; ok && string(v) != "precious" {
					t.Errorf("\n%s\nKey %q was written over", tc.reason, k)
				}
			}
			synced, ready := cr.GetCondition(xpv2.TypeSynced), cr.GetCondition(xpv2.TypeReady)
			if want := tc.says == ""; (synced.Status == corev1.ConditionTrue) != want || (ready.Status == corev1.ConditionTrue) != want {
				t.Errorf("\n%s\nwant Ready and Synced %t, got %+v, %+v", tc.reason, want, ready, synced)
			}
			if !strings.Contains(synced.Message, tc.says) {
				t.Errorf("\n%s\nSynced: want %q, got %q", tc.reason, tc.says, synced.Message)
			}
			if got := cr.Status.AtProvider.Identity; got != id || is.Annotations[v1alpha1.AnnotationIdentity] != id && tc.says == "" {
				t.Errorf("\n%s\nThe identity should be the same: was %q, is %q", tc.reason, id, got)
			}
			b.writes = nil
			b.settle()
			if len(b.writes) != 0 {
				t.Errorf("\n%s\nOnce done there should be no more writes, got %v", tc.reason, b.writes)
			}
		})
	}
}

// TestKeyThatComesBack shows that a key which was taken out and comes back has its value, and that meanwhile it was not rotated.
func TestKeyThatComesBack(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(everything())
	b.settle()
	was := b.secret()
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Keys = p.Keys[:1] })
	b.settle()
	b.now = start.Add(720 * time.Hour)
	b.settle()
	if is := b.secret(); cmp.Equal(was.Data["password"], is.Data["password"]) || !cmp.Equal(was.Data["token"], is.Data["token"]) {
		t.Error("A rotation should replace the values that are asked for, and no others")
	}
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Keys = append(p.Keys, v1alpha1.Key{Name: "token"}) })
	b.settle()
	if is := b.secret(); !cmp.Equal(was.Data["token"], is.Data["token"]) {
		t.Error("A key that comes back should have its value")
	}
}

func TestBindingOfASecret(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(everything())
	b.settle()
	if got, want := b.secret().Type, corev1.SecretType("servicebinding.io/postgresql"); got != want {
		t.Errorf("Type of a Secret that is made with a connection: want %q, got %q", want, got)
	}
	if diff := cmp.Diff(&v1alpha1.Binding{Name: name.Name}, b.credential().Status.Binding); diff != "" {
		t.Errorf("status.binding: -want, +got:\n%s", diff)
	}
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Connection = nil })
	b.settle()
	if got := b.credential().Status.Binding; got != nil {
		t.Errorf("status.binding: want none without a connection, got %v", got)
	}
}

// TestIdentityIsGivenBack shows that a Secret which is recreated while its Credential is there has other values and the same
// identity.
func TestIdentityIsGivenBack(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(everything())
	b.settle()
	was := b.secret()
	b.remove(was)

	// Whatever becomes of the Credential between looking and making.
	cr := b.credential()
	if o, err := b.external().Observe(t.Context(), cr); err != nil || o.ResourceUpToDate || cr.Status.AtProvider.Identity != recall(was).identity {
		t.Errorf("Observe(...): want no Secret and the identity it had, got %+v (%v)", cr.Status.AtProvider, err)
	}
	b.settle()
	is := b.secret()
	if cmp.Equal(was.Data["password"], is.Data["password"]) {
		t.Error("A Secret that was deleted should be made again")
	}
	if want, got := recall(was).identity, recall(is).identity; got != want || got == "" {
		t.Errorf("Identity: want %q, got %q", want, got)
	}

	// Without the Credential nobody remembers.
	b.remove(b.credential())
	b.remove(is)
	b.apply(everything())
	b.settle()
	if got := recall(b.secret()).identity; got == recall(was).identity {
		t.Error("What is made from nothing should have an identity of its own")
	}
}

// TestObserveOnly shows that without the right to update nothing is written, and what is there is told.
func TestObserveOnly(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	cr := everything()
	cr.Spec.ManagementPolicies = xpv2.ManagementPolicies{"Observe"}
	cr.Spec.ForProvider.Rotation.ID = "now"
	old := secret(ours(), map[string][]byte{v1alpha1.KeyPassword: []byte("precious")})
	b.apply(old, cr)
	b.settle()
	if diff := cmp.Diff(map[string][]byte{v1alpha1.KeyPassword: []byte("precious")}, b.secret().Data); diff != "" {
		t.Errorf("The Secret: -want, +got:\n%s", diff)
	}
	if got := b.credential().GetCondition(xpv2.TypeReady); got.Status != corev1.ConditionFalse {
		t.Errorf("A Credential whose Secret lacks what is asked for should not be available, got %+v", got)
	}
}
