// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// alternating Credential, of two usernames that take turns.
func alternating(edit ...func(*v1alpha1.CredentialParameters)) *v1alpha1.Credential {
	cr := credential(keep)
	cr.Spec.ForProvider = v1alpha1.CredentialParameters{
		Keys:     []v1alpha1.Key{{Name: v1alpha1.KeyPassword}},
		Rotation: &v1alpha1.Rotation{Every: "720h", KeepPrevious: "24h"},
		Connection: &v1alpha1.Connection{
			Type: v1alpha1.TypePostgreSQL, Host: "orders-db-rw", Port: ptr.To[int32](5432),
			Username: "api", AlternateUsername: "api-b", Database: "orders",
		},
	}
	for _, e := range edit {
		e(&cr.Spec.ForProvider)
	}
	return cr
}

// accept what is staged, as the composition of a Database does.
func (b *bench) accept() {
	b.t.Helper()
	staged := b.credential().Status.AtProvider.Staged
	if staged == "" {
		b.t.Fatal("nothing is staged")
	}
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Rotation.Accepted = staged })
	b.settle()
}

// A pair of login and password, as clients find them in a Secret.
type pair struct{ username, password string }

func pairOf(s *corev1.Secret) pair {
	return pair{string(s.Data[v1alpha1.KeyUsername]), string(s.Data[v1alpha1.KeyPassword])}
}

func TestAlternate(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(alternating())
	b.settle()
	first := pairOf(b.secret())
	if at := b.credential().Status.AtProvider; first.username != "api" || at.Generation != 1 || at.Username != "api" || at.Staged != "" {
		t.Fatalf("At first the first username is in use, got %+v of %+v", first.username, at)
	}

	// The time has come. Clients see nothing of it yet.
	b.now = start.Add(721 * time.Hour)
	b.settle()
	s, at := b.secret(), b.credential().Status.AtProvider
	if diff := cmp.Diff(first, pairOf(s), cmp.AllowUnexported(pair{})); diff != "" {
		t.Errorf("Clients should go on with what they have until the other login is made: -want, +got:\n%s", diff)
	}
	next := string(s.Data[v1alpha1.KeyPassword+v1alpha1.SuffixNext])
	if next == "" || next == first.password || !strings.HasPrefix(at.Staged, "2-") {
		t.Fatalf("Another password should be staged, got %q, and %d characters", at.Staged, len(next))
	}
	b.writes = nil
	b.settle()
	if len(b.writes) != 0 {
		t.Errorf("While it waits nothing should be written, got %v", b.writes)
	}

	// What accepted something else has not accepted this.
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Rotation.Accepted = "2-00000000" })
	b.settle()
	if got := pairOf(b.secret()); got != first {
		t.Errorf("Only what is staged may be taken into use, got %q", got.username)
	}
	b.accept()
	s, at = b.secret(), b.credential().Status.AtProvider
	if got, want := pairOf(s), (pair{"api-b", next}); got != want {
		t.Fatalf("Username and password should change together: want %q, got %q", want.username, got.username)
	}
	if uri := string(s.Data[v1alpha1.KeyURI]); !strings.HasPrefix(uri, "postgresql://api-b:"+next+"@") {
		t.Error("The URI should have the new username and password")
	}
	if string(s.Data[v1alpha1.KeyPassword+v1alpha1.SuffixPrevious]) != first.password || len(s.Data[v1alpha1.KeyPassword+v1alpha1.SuffixNext]) > 0 {
		t.Error("The password before should stay for a while, and nothing should be staged")
	}
	if until := b.now.UTC().Truncate(time.Second).Add(24 * time.Hour); at.Generation != 2 || at.Staged != "" || at.PreviousUntil == nil ||
		!at.PreviousUntil.Time.Equal(until) || s.Annotations[v1alpha1.AnnotationOverlapUntil] != until.Format(time.RFC3339) {
		t.Errorf("The overlap should be told until %s, got %+v", until, at)
	}

	// The overlap ends.
	b.now = b.now.Add(24 * time.Hour)
	b.settle()
	if s := b.secret(); s.Annotations[v1alpha1.AnnotationOverlapUntil] != "" || len(s.Data[v1alpha1.KeyPassword+v1alpha1.SuffixPrevious]) > 0 {
		t.Errorf("The overlap should have ended, got %v", s.Annotations)
	}

	// And the first username again.
	b.now = b.now.Add(720 * time.Hour)
	b.settle()
	b.accept()
	if got := pairOf(b.secret()); got.username != "api" || b.credential().Status.AtProvider.Generation != 3 {
		t.Errorf("The usernames should take turns, got %q", got.username)
	}
}

func TestAlternateTakenBack(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(alternating(func(p *v1alpha1.CredentialParameters) { p.Rotation = &v1alpha1.Rotation{ID: "a", KeepPrevious: "24h"} }))
	b.settle()
	first := pairOf(b.secret())
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Rotation.ID = "b" })
	b.settle()
	staged := b.credential().Status.AtProvider.Staged
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Rotation = nil })
	b.settle()
	if s := b.secret(); pairOf(s) != first || len(s.Data[v1alpha1.KeyPassword+v1alpha1.SuffixNext]) > 0 {
		t.Error("Without a rotation nothing should be staged")
	}
	b.ask(func(p *v1alpha1.CredentialParameters) {
		p.Rotation = &v1alpha1.Rotation{ID: "c", KeepPrevious: "0s", Accepted: staged}
	})
	b.settle()
	again := b.credential().Status.AtProvider.Staged
	if pairOf(b.secret()) != first || again == "" || again == staged {
		t.Fatalf("What accepted %q must not accept %q", staged, again)
	}
	b.accept()
	s, at := b.secret(), b.credential().Status.AtProvider
	if pairOf(s).username != "api-b" || at.RotationID != "c" || at.PreviousUntil != nil || s.Annotations[v1alpha1.AnnotationOverlapUntil] != "" {
		t.Errorf("With keepPrevious 0s nothing overlaps, got %+v", at)
	}

	// The username in use stays when rotation goes.
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Rotation = nil })
	b.settle()
	if got := pairOf(b.secret()); got != pairOf(s) {
		t.Errorf("The username should stay, got %q", got.username)
	}
}

func TestAlternateLost(t *testing.T) {
	cases := map[string]struct {
		reason string
		lose   func(b *bench, s *corev1.Secret)
		want   string
		same   bool
	}{
		"Secret": {
			reason: "Clients still have what was in it, so the other username is used.",
			lose:   func(b *bench, s *corev1.Secret) { b.remove(s) },
			want:   "api-b",
		},
		"Record": {
			reason: "What clients can read decides, and not a count that is lost.",
			lose: func(b *bench, s *corev1.Secret) {
				delete(s.Annotations, v1alpha1.AnnotationGeneration)
				b.change(s)
			},
			want: "api", same: true,
		},
		"Staged": {
			reason: "A password that is gone is not waited for: another one is staged.",
			lose: func(b *bench, s *corev1.Secret) {
				delete(s.Data, v1alpha1.KeyPassword+v1alpha1.SuffixNext)
				b.change(s)
			},
			want: "api", same: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			b.apply(alternating())
			b.settle()

			// Twice, so that the first is in use and the third is staged.
			for range 2 {
				b.now = b.now.Add(721 * time.Hour)
				b.settle()
				b.accept()
			}
			b.now = b.now.Add(721 * time.Hour)
			b.settle()
			before, staged := b.secret(), b.credential().Status.AtProvider.Staged
			tc.lose(b, b.secret())
			b.settle()
			after, at := b.secret(), b.credential().Status.AtProvider
			if got := pairOf(after); got.username != tc.want || (got == pairOf(before)) != tc.same {
				t.Errorf("\n%s\nwant username %q, and the same values %t, got %q", tc.reason, tc.want, tc.same, got.username)
			}
			if name == "Staged" && (at.Staged == "" || at.Staged == staged) {
				t.Errorf("\n%s\ngot %q after %q", tc.reason, at.Staged, staged)
			}
			if name == "Secret" && (at.Generation != 4 || after.Annotations[v1alpha1.AnnotationOverlapUntil] == "") {
				t.Errorf("\n%s\ngot generation %d, %v", tc.reason, at.Generation, after.Annotations)
			}
		})
	}
}

// TestAlternateInACrash ends each request to the Secret, before it arrived or after:
// whatever clients read is one username with the password that was made for it.
func TestAlternateInACrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := range 8 {
			n, boom := 0, errors.New("connection reset")
			b := newBench(t, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					if _, ok := o.(*corev1.Secret); !ok {
						return c.Patch(ctx, o, p, opts...)
					}
					if n++; n-1 != at {
						return c.Patch(ctx, o, p, opts...)
					}
					if after {
						return errors.Join(c.Patch(ctx, o, p, opts...), boom)
					}
					return boom
				},
			})
			b.apply(alternating())
			b.settle()
			made := map[string]string{"api": pairOf(b.secret()).password}
			for turn := range 3 {
				b.now = b.now.Add(721 * time.Hour)
				b.r = b.reconciler()
				b.settle()
				other := []string{"api-b", "api"}[turn%2]
				was := pairOf(b.secret())
				if was.password != made[was.username] {
					t.Fatalf("after %t, request %d: clients read a password that %q does not have", after, at, was.username)
				}
				made[other] = string(b.secret().Data[v1alpha1.KeyPassword+v1alpha1.SuffixNext])
				b.r = b.reconciler()
				b.accept()
				if got := pairOf(b.secret()); got != (pair{other, made[other]}) {
					t.Fatalf("after %t, request %d: want %q with its password, got %q", after, at, other, got.username)
				}
			}
		}
	}
}
