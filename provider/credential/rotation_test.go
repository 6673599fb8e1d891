// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/scram"
)

func TestDue(t *testing.T) {
	made := start.Truncate(time.Second)
	monthly := &v1alpha1.Rotation{Every: "720h"}
	cases := map[string]struct {
		reason string
		params *v1alpha1.Rotation
		record record
		after  time.Duration
		want   bool
	}{
		"NoRotation": {
			reason: "Values that nobody asked to rotate never change.",
			record: record{rotatedAt: made},
			after:  100 * 365 * 24 * time.Hour,
		},
		"TooEarly": {
			reason: "A second before its time nothing is due.",
			params: monthly,
			record: record{rotatedAt: made},
			after:  720*time.Hour - time.Second,
		},
		"OnTime": {
			reason: "A rotation is due when its time has come.",
			params: monthly,
			record: record{rotatedAt: made},
			after:  720 * time.Hour,
			want:   true,
		},
		"ClockWentBack": {
			reason: "A last rotation that lies in the future replaces nothing.",
			params: monthly,
			record: record{rotatedAt: made},
			after:  -10000 * time.Hour,
		},
		"NoRecord": {
			reason: "Values of which nobody knows the age are not rotated by it.",
			params: monthly,
			after:  10000 * time.Hour,
		},
		"Illegible": {
			reason: "A duration that no schema has let through is no schedule.",
			params: &v1alpha1.Rotation{Every: "monthly"},
			record: record{rotatedAt: made},
			after:  10000 * time.Hour,
		},
		"SameID": {
			reason: "An id rotates once.",
			params: &v1alpha1.Rotation{ID: "2026-11"},
			record: record{rotatedAt: made, rotationID: "2026-11"},
		},
		"OtherID": {
			reason: "Another id rotates at once, whatever the schedule says.",
			params: &v1alpha1.Rotation{ID: "2026-12", Every: "720h"},
			record: record{rotatedAt: made, rotationID: "2026-11"},
			want:   true,
		},
		"FirstID": {
			reason: "The first id of values that were made without one rotates.",
			params: &v1alpha1.Rotation{ID: "2026-11"},
			record: record{rotatedAt: made},
			want:   true,
		},
		"IDTakenAway": {
			reason: "To ask for no id is to ask for no rotation.",
			params: monthly,
			record: record{rotatedAt: made, rotationID: "2026-11"},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if got := due(tc.params, tc.record, made.Add(tc.after)); got != tc.want {
				t.Errorf("\n%s\ndue(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// everything there is to rotate.
func everything() *v1alpha1.Credential {
	cr := credential(keep)
	cr.Spec.ForProvider = v1alpha1.CredentialParameters{
		Keys: []v1alpha1.Key{
			{Name: v1alpha1.KeyPassword, Derive: []v1alpha1.Derivation{
				{Format: v1alpha1.FormatSCRAM, Key: "verifier"},
				// Cheaper than the schema lets anybody be.
				{Format: v1alpha1.FormatBcrypt, Key: "hash", Cost: ptr.To(int32(bcrypt.MinCost))},
			}},
			{Name: "token", Alphabet: v1alpha1.AlphabetHexadecimal, Length: ptr.To[int32](64)},
		},
		Rotation: &v1alpha1.Rotation{Every: "720h", KeepPrevious: "48h"},
		Connection: &v1alpha1.Connection{
			Type:     v1alpha1.TypePostgreSQL,
			Host:     "orders-db-rw",
			Port:     ptr.To[int32](5432),
			Username: "orders",
			Database: "orders",
		},
	}
	return cr
}

func TestRotationLife(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(everything())
	b.settle()
	first := b.secret()
	b.fits(first, "")

	// Time goes by, and nothing happens.
	b.now = start.Add(719 * time.Hour)
	b.writes = nil
	b.settle()
	if len(b.writes) != 0 {
		t.Errorf("Before its time a rotation should write nothing, got %v", b.writes)
	}
	next := b.credential().Status.AtProvider.NextRotation
	if want := start.Truncate(time.Second).Add(720 * time.Hour); next == nil || !next.Time.Equal(want) {
		t.Errorf("Next rotation: want %s, got %v", want, next)
	}

	// The time has come, three times over: the provider was stopped.
	b.now = start.Add(3*720*time.Hour + time.Minute)
	b.settle()
	second := b.secret()
	b.fits(second, "")
	b.fits(second, v1alpha1.SuffixPrevious)
	for _, k := range []string{v1alpha1.KeyPassword, "token", "verifier", "hash"} {
		if cmp.Equal(first.Data[k], second.Data[k]) {
			t.Errorf("Key %q should have changed", k)
		}
		if !cmp.Equal(first.Data[k], second.Data[k+v1alpha1.SuffixPrevious]) {
			t.Errorf("Key %q should be kept, byte for byte", k)
		}
	}
	if cmp.Equal(first.Data[v1alpha1.KeyURI], second.Data[v1alpha1.KeyURI]) {
		t.Error("The URI should have the new password")
	}
	if first.Annotations[v1alpha1.AnnotationIdentity] != second.Annotations[v1alpha1.AnnotationIdentity] {
		t.Error("The identity should be the same after a rotation")
	}
	at := b.credential().Status.AtProvider
	for what, times := range map[string][2]*metav1.Time{
		"last rotation":  {at.LastRotation, new(metav1.NewTime(b.now.Truncate(time.Second)))},
		"next rotation":  {at.NextRotation, new(metav1.NewTime(b.now.Truncate(time.Second).Add(720 * time.Hour)))},
		"previous until": {at.PreviousUntil, new(metav1.NewTime(b.now.Truncate(time.Second).Add(48 * time.Hour)))},
	} {
		if !times[0].Equal(times[1]) {
			t.Errorf("Status of %s: want %s, got %s", what, times[1], times[0])
		}
	}
	if got := b.credential().GetCondition(xpv2.TypeReady); got.Status != corev1.ConditionTrue {
		t.Errorf("A Credential should stay available while it rotates, got %+v", got)
	}
	b.writes = nil
	b.settle()
	if len(b.writes) != 0 {
		t.Errorf("After a rotation there should be no more writes, got %v", b.writes)
	}

	// The clock goes back, and nothing happens.
	b.now = start
	b.settle()
	if len(b.writes) != 0 {
		t.Errorf("A clock that goes back should cause no write, got %v", b.writes)
	}

	// The previous ones go.
	b.now = recall(second).rotatedAt.Add(48 * time.Hour)
	b.settle()
	third := b.secret()
	for k := range third.Data {
		if isPrevious(k) {
			t.Errorf("Key %q should be gone", k)
		}
	}
	for _, k := range []string{v1alpha1.KeyPassword, "token", "verifier", "hash", v1alpha1.KeyURI} {
		if !cmp.Equal(second.Data[k], third.Data[k]) {
			t.Errorf("Key %q should stay when the previous values go", k)
		}
	}
	if got := b.credential().Status.AtProvider.PreviousUntil; got != nil {
		t.Errorf("Status: nothing previous is kept until %s", got)
	}
}

// fits tells when what is derived does not fit the value with this suffix.
func (b *bench) fits(s *corev1.Secret, suffix string) {
	b.t.Helper()
	pw := s.Data[v1alpha1.KeyPassword+suffix]
	v, err := scram.Parse(s.Data["verifier"+suffix])
	if err != nil || !v.Fits(pw) {
		b.t.Errorf("Key %q does not fit its password: %v", "verifier"+suffix, err)
	}
	if err := bcrypt.CompareHashAndPassword(s.Data["hash"+suffix], pw); err != nil {
		b.t.Errorf("Key %q does not fit its password: %v", "hash"+suffix, err)
	}
}

func TestRotationByID(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	cr := everything()
	cr.Spec.ForProvider.Rotation = &v1alpha1.Rotation{ID: "a", KeepPrevious: "24h"}
	b.apply(cr)
	b.settle()
	first := b.secret()
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Rotation.ID = "b" })
	b.settle()
	second := b.secret()
	if cmp.Equal(first.Data["token"], second.Data["token"]) || !cmp.Equal(first.Data["token"], second.Data["token.previous"]) {
		t.Error("Another id should replace the values and keep the previous ones")
	}
	if got := b.credential().Status.AtProvider.RotationID; got != "b" {
		t.Errorf("Status: want id %q, got %q", "b", got)
	}

	// No downtime is wanted: the value has leaked.
	b.ask(func(p *v1alpha1.CredentialParameters) {
		p.Rotation = &v1alpha1.Rotation{ID: "leak-1", KeepPrevious: "0s"}
	})
	b.settle()
	third := b.secret()
	if cmp.Equal(second.Data["token"], third.Data["token"]) {
		t.Error("A third id should replace the values again")
	}
	for k := range third.Data {
		if isPrevious(k) {
			t.Errorf("keepPrevious 0s should keep nothing, got key %q", k)
		}
	}

	// The record outlives the Credential.
	b.remove(b.credential())
	again := everything()
	again.Spec.ForProvider.Rotation = &v1alpha1.Rotation{ID: "leak-1", KeepPrevious: "0s"}
	b.apply(again)
	b.settle()
	if diff := cmp.Diff(third, b.secret()); diff != "" {
		t.Errorf("A Credential that comes back with the same id should find its Secret unchanged: -want, +got:\n%s", diff)
	}
}

// TestRotationInACrash ends the one request of a rotation in every way there is.
func TestRotationInACrash(t *testing.T) {
	boom := errors.New("connection reset")
	byHand := map[string][]byte{v1alpha1.KeyPassword: []byte("by-hand"), "note": []byte("precious")}
	cases := map[string]struct {
		reason string
		// changed meanwhile, by somebody else.
		changed map[string][]byte
		patch   func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error
	}{
		"Before": {
			reason: "What never arrived is done again, from the same values.",
			patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return boom
			},
		},
		"After": {
			reason: "What arrived without an answer is not done again.",
			patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return errors.Join(c.Patch(ctx, o, p, opts...), boom)
			},
		},
		"Overtaken": {
			reason:  "Somebody who was quicker is not written over, and what they wrote is what is kept.",
			changed: byHand,
			patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				s := &corev1.Secret{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), s); err != nil {
					return err
				}
				maps.Copy(s.Data, byHand)
				if err := c.Update(ctx, s); err != nil {
					return err
				}
				return c.Patch(ctx, o, p, opts...)
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			faults := 0
			b := newBench(t, interceptor.Funcs{Patch: func(
				ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
			) error {
				if faults == 0 {
					return c.Patch(ctx, o, p, opts...)
				}
				faults--
				return tc.patch(ctx, c, o, p, opts...)
			}})
			b.apply(everything())
			b.settle()
			first := b.secret()
			b.now = start.Add(721 * time.Hour)
			faults = 1
			b.reconcile()
			if faults != 0 {
				t.Fatal("Nothing was written, so this proves nothing")
			}
			if got := b.credential().GetCondition(xpv2.TypeReady); got.Status != corev1.ConditionTrue {
				t.Errorf("\n%s\nThe values that are there should stay available, got %+v", tc.reason, got)
			}

			// A restart: nothing is remembered but what the Secret holds.
			b.r = b.reconciler()
			b.settle()
			second := b.secret()
			b.fits(second, "")
			b.fits(second, v1alpha1.SuffixPrevious)
			maps.Copy(first.Data, tc.changed)
			for _, k := range []string{v1alpha1.KeyPassword, "token"} {
				if !cmp.Equal(first.Data[k], second.Data[k+v1alpha1.SuffixPrevious]) {
					t.Errorf("\n%s\nThe previous value of %q should be the one before the rotation", tc.reason, k)
				}
				if cmp.Equal(first.Data[k], second.Data[k]) {
					t.Errorf("\n%s\nKey %q should have been rotated", tc.reason, k)
				}
			}
		})
	}
}

// TestTakeOver shows that values are never rotated for what was before the record.
func TestTakeOver(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	old := secret(ours(), map[string][]byte{v1alpha1.KeyPassword: []byte("precious")})
	old.CreationTimestamp = metav1.NewTime(start.Add(-10000 * time.Hour))
	cr := credential(keep)
	cr.Spec.ForProvider.Rotation = &v1alpha1.Rotation{Every: "720h", ID: "2026-11"}
	b.apply(old, cr)
	b.settle()
	if got := string(b.secret().Data[v1alpha1.KeyPassword]); got != "precious" {
		t.Error("A Secret that is taken over should keep its password")
	}
	at := b.credential().Status.AtProvider
	if at.Identity == "" || at.RotationID != "2026-11" || at.LastRotation == nil {
		t.Errorf("A Secret that is taken over should get a record, got %+v", at)
	}
	b.now = start.Add(720 * time.Hour)
	b.settle()
	s := b.secret()
	if got := string(s.Data["password.previous"]); got != "precious" || string(s.Data[v1alpha1.KeyPassword]) == "precious" {
		t.Error("The schedule should count from when the Secret was taken over, and keep what it replaces")
	}
}

func TestWake(t *testing.T) {
	in := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(start.Add(d))) }
	cases := map[string]struct {
		reason   string
		modify   func(*v1alpha1.Credential)
		status   v1alpha1.CredentialObservation
		min, max time.Duration
	}{
		"Certificates": {
			reason: "Who waits for a new Database waits for its certificates.",
			modify: func(cr *v1alpha1.Credential) { cr.SetCreationTimestamp(metav1.NewTime(start.Add(-time.Minute))) },
			min:    awaitCA,
			max:    awaitCA,
		},
		"CertificatesAreThere": {
			reason: "Nothing is waited for.",
			modify: func(cr *v1alpha1.Credential) { cr.SetCreationTimestamp(metav1.NewTime(start.Add(-time.Minute))) },
			status: v1alpha1.CredentialObservation{Keys: []string{v1alpha1.KeyCA, v1alpha1.KeyPassword}},
			min:    9 * time.Minute,
			max:    11 * time.Minute,
		},
		"CertificatesNeverCome": {
			reason: "A source that nobody makes is no reason to look all the time.",
			modify: func(cr *v1alpha1.Credential) {
				cr.SetCreationTimestamp(metav1.NewTime(start.Add(-time.Hour)))
				cr.SetConditions(xpv2.Unavailable())
			},
			min: 30 * time.Second,
			max: 30 * time.Second,
		},
		"NoDeadline": {
			reason: "Without a deadline the poll interval is as for every kind.",
			min:    9 * time.Minute,
			max:    11 * time.Minute,
		},
		"Later": {
			reason: "A deadline that is far away changes nothing.",
			status: v1alpha1.CredentialObservation{NextRotation: in(time.Hour)},
			min:    9 * time.Minute,
			max:    11 * time.Minute,
		},
		"Soon": {
			reason: "A rotation is not late.",
			status: v1alpha1.CredentialObservation{NextRotation: in(time.Minute), PreviousUntil: in(time.Hour)},
			min:    61 * time.Second,
			max:    61 * time.Second,
		},
		"PreviousSooner": {
			reason: "The previous values do not stay longer than they were promised to.",
			status: v1alpha1.CredentialObservation{NextRotation: in(time.Hour), PreviousUntil: in(time.Second)},
			min:    2 * time.Second,
			max:    2 * time.Second,
		},
		"Passed": {
			reason: "A deadline that has passed is not waited for: Update may not be allowed.",
			status: v1alpha1.CredentialObservation{NextRotation: in(-time.Second)},
			min:    9 * time.Minute,
			max:    11 * time.Minute,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			cr := credential(keep)
			cr.SetConditions(xpv2.Available())
			cr.Status.AtProvider = tc.status
			if tc.modify != nil {
				cr.Spec.ForProvider.Connection = &v1alpha1.Connection{CAFrom: &v1alpha1.CASource{}}
				tc.modify(cr)
			}
			hook := wake(func() time.Time { return start })
			if got := hook(cr, 10*time.Minute); got < tc.min || got > tc.max {
				t.Errorf("\n%s\nwake(...): want %s to %s, got %s", tc.reason, tc.min, tc.max, got)
			}
		})
	}
}

// TestWakesForItself shows that the reconciler hears of the deadline it has just learnt of.
func TestWakesForItself(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(everything())
	b.settle()
	b.now = start.Add(720*time.Hour - 30*time.Second)
	if got := b.reconcile().RequeueAfter; got <= 0 || got > 32*time.Second {
		t.Errorf("Half a minute before a rotation: want to be woken for it, got %s", got)
	}
	b.now = start.Add(720 * time.Hour)
	if got := b.reconcile().RequeueAfter; got <= 0 || got > 12*time.Minute {
		t.Errorf("After a rotation: want to be woken by the poll, got %s", got)
	}

	// The next look is ten minutes away.
	at := b.credential().Status.AtProvider
	if want := start.Truncate(time.Second).Add(2 * 720 * time.Hour); at.NextRotation == nil || !at.NextRotation.Time.Equal(want) {
		t.Errorf("Status right after a rotation: want the next one at %s, got %v", want, at.NextRotation)
	}
}
