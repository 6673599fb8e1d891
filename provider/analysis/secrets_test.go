// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

func secretOf(name string, uid types.UID, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid}, Data: data}
}

func TestFingerprint(t *testing.T) {
	base := fingerprint(secretOf("license", "1", map[string][]byte{"key": []byte("value"), "other": nil}))

	if len(base) != 16 {
		t.Errorf("A fingerprint should have 16 digits, got %q", base)
	}

	same := secretOf("renamed", "1", map[string][]byte{"other": {}, "key": []byte("value")})
	same.Labels = map[string]string{"a": "b"}

	if got := fingerprint(same); got != base {
		t.Errorf("Only the content should count, got %q and %q", base, got)
	}

	for reason, o := range map[string]*corev1.Secret{
		"another value":                   secretOf("license", "1", map[string][]byte{"key": []byte("other"), "other": nil}),
		"another key":                     secretOf("license", "1", map[string][]byte{"yek": []byte("value"), "other": nil}),
		"a key less":                      secretOf("license", "1", map[string][]byte{"key": []byte("value")}),
		"the same letters, cut elsewhere": secretOf("license", "1", map[string][]byte{"keyv": []byte("alue"), "other": nil}),
		"another Secret of this name":     secretOf("license", "2", map[string][]byte{"key": []byte("value"), "other": nil}),
	} {
		if got := fingerprint(o); got == base {
			t.Errorf("It should be another one with %s", reason)
		}
	}
}

// A cabinet of Secrets that is watched and read.
type cabinet struct {
	mu      sync.Mutex
	reads   int
	watches map[types.NamespacedName]*watch.FakeWatcher
	begun   chan types.NamespacedName
	refuse  error
}

func (c *cabinet) watch(_ context.Context, of types.NamespacedName) (watch.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.refuse != nil {
		return nil, c.refuse
	}

	w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
	c.watches[of] = w
	c.begun <- of

	return w, nil
}

func (c *cabinet) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	n := c.reads
	c.reads = 0

	return n
}

func newCabinet(t *testing.T, objects ...client.Object) (*cabinet, *secrets, client.Client, chan types.NamespacedName) {
	t.Helper()

	c := &cabinet{watches: map[types.NamespacedName]*watch.FakeWatcher{}, begun: make(chan types.NamespacedName, 10)}
	kube := newKube(t, interceptor.Funcs{Get: func(
		ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		c.mu.Lock()
		c.reads++
		c.mu.Unlock()

		return k.Get(ctx, key, o, opts...)
	}}, objects...)
	woken := make(chan types.NamespacedName, 10)
	s := newSecrets(kube, c.watch)
	s.start(t.Context(), func(of types.NamespacedName) { woken <- of })

	return c, s, kube, woken
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()

	select {
	case x := <-c:
		return x
	case <-time.After(5 * time.Second):
		t.Fatalf("%s did not happen", what)
	}

	panic("unreachable")
}

// TestSecrets follows a Secret from before it is there until after it is gone.
func TestSecrets(t *testing.T) {
	cab, s, kube, woken := newCabinet(t)
	a := analysisOf("watch", "reco")
	a.UID, a.Spec.ForProvider.Secrets = "1", []string{"license", "absent"}

	tell := func() []string {
		t.Helper()

		missing, err := s.tell(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}

		return missing
	}

	if diff := cmp.Diff([]string{"absent", "license"}, tell()); diff != "" || a.Status.AtProvider.Secrets != nil {
		t.Errorf("Both should be missing: %s, %v", diff, a.Status.AtProvider.Secrets)
	}

	for range 2 {
		await(t, "a watch", cab.begun)
		await(t, "waking after a watch began", woken)
	}

	tell()
	cab.count()
	tell()

	if n := cab.count(); n != 0 {
		t.Errorf("What is watched and has not changed should not be read, got %d reads", n)
	}

	// It is made.
	of := types.NamespacedName{Namespace: "shop", Name: "license"}
	change := func(do func(*watch.FakeWatcher)) {
		t.Helper()
		cab.mu.Lock()
		w := cab.watches[of]
		cab.mu.Unlock()
		do(w)
		await(t, "waking after a change", woken)
	}

	o := secretOf("license", "7", map[string][]byte{"key": []byte("one")})
	if err := kube.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}

	change(func(w *watch.FakeWatcher) { w.Add(&metav1.PartialObjectMetadata{}) })

	if diff := cmp.Diff([]string{"absent"}, tell()); diff != "" || len(a.Status.AtProvider.Secrets) != 1 {
		t.Errorf("One should be there: %s, %v", diff, a.Status.AtProvider.Secrets)
	}

	if n := cab.count(); n != 1 {
		t.Errorf("Only what has changed should be read, got %d reads", n)
	}

	// It changes.
	was := a.Status.AtProvider.Secrets[0]
	o.Data["key"] = []byte("two")

	if err := kube.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}

	change(func(w *watch.FakeWatcher) { w.Modify(&metav1.PartialObjectMetadata{}) })
	tell()

	if is := a.Status.AtProvider.Secrets[0]; is.Fingerprint == was.Fingerprint || is.Name != was.Name {
		t.Errorf("A change should be told, got %v and %v", was, is)
	}

	// The watch ends, and it is deleted before the next one begins: there is no event.
	if err := kube.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}

	change(func(w *watch.FakeWatcher) { w.Stop() })

	if diff := cmp.Diff([]string{"absent", "license"}, tell()); diff != "" {
		t.Errorf("What happens between two watches should not be missed: %s", diff)
	}

	// It is no longer named, then nobody names any.
	a.Spec.ForProvider.Secrets = []string{"absent"}
	tell()

	b := analysisOf("too", "reco")
	b.UID, b.Spec.ForProvider.Secrets = "2", []string{"absent"}

	if _, err := s.tell(t.Context(), b); err != nil {
		t.Fatal(err)
	}

	if len(s.known) != 1 || len(s.known[types.NamespacedName{Namespace: "shop", Name: "absent"}].users) != 2 {
		t.Errorf("Only what is named should be watched, and once, got %v", s.known)
	}

	s.forget("1")
	s.forget("2")

	if len(s.known) != 0 {
		t.Errorf("What nobody names should be forgotten, got %v", s.known)
	}
}

// TestSecretsUnwatched shows that Secrets are read each time when nobody would tell
// that they have changed.
func TestSecretsUnwatched(t *testing.T) {
	o := secretOf("license", "7", map[string][]byte{"key": []byte("one")})
	cab, s, _, _ := newCabinet(t, o)
	cab.refuse = errors.New("forbidden")

	a := analysisOf("watch", "reco")
	a.UID, a.Spec.ForProvider.Secrets = "1", []string{"license"}

	for range 3 {
		if missing, err := s.tell(t.Context(), a); err != nil || len(missing) != 0 {
			t.Fatal(missing, err)
		}
	}

	if n := cab.count(); n != 3 {
		t.Errorf("want 3 reads, got %d", n)
	}
}

// TestSecretsFail shows that a Secret that cannot be read does not keep findings
// from being told.
func TestSecretsFail(t *testing.T) {
	one := pod("reco-a-1", waiting("InvalidImageName", ""))
	boom := errors.New("boom")
	kube := newKube(t, interceptor.Funcs{Get: func(
		ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		if _, ok := o.(*corev1.Secret); ok {
			return boom
		}

		return k.Get(ctx, key, o, opts...)
	}}, &one)

	a := analysisOf("watch", "reco")
	a.Spec.ForProvider.Secrets = []string{"license"}
	a.Status.AtProvider.Secrets = []v1alpha1.SecretObservation{{Name: "license", Fingerprint: "0123456789abcdef"}}

	if _, err := newObserver(kube, time.Now).Observe(t.Context(), a); !errors.Is(err, boom) {
		t.Errorf("Observe(...): want %v, got %v", boom, err)
	}

	if len(a.Status.AtProvider.Findings) != 1 || len(a.Status.AtProvider.Secrets) != 1 {
		t.Errorf("Findings should be told, and what was known of Secrets stay, got %+v", a.Status.AtProvider)
	}
}

// TestMissingSecret shows when a missing Secret is what hinders a pod.
func TestMissingSecret(t *testing.T) {
	creating := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}

	cases := map[string]struct {
		reason string
		mods   []func(*corev1.Pod)
		want   []string
	}{
		"Creating": {reason: "A pod whose volumes cannot be mounted starts no container.", mods: []func(*corev1.Pod){creating}, want: []string{"ConfigError"}},
		"Running":  {reason: "One that runs has what it needs.", mods: []func(*corev1.Pod){running(time.Second)}},
		"Pulling":  {reason: "Neither does one that waits for an image wait for it.", mods: []func(*corev1.Pod){waiting("InvalidImageName", "")}, want: []string{"ImagePullFailed"}},
		"NoNode":   {reason: "Without a node nothing is mounted.", mods: []func(*corev1.Pod){unfit("0/1 nodes are available: 1 Insufficient cpu.")}, want: []string{"Unschedulable"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Findings([]corev1.Pod{pod("reco-a-1", tc.mods...)}, container, []string{"license"}, now) {
				got = append(got, f.Reason)
			}

			if !slices.Equal(got, tc.want) {
				t.Errorf("\n%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}

	got := Findings([]corev1.Pod{pod("reco-a-1", creating)}, container, []string{"license"}, now)
	want := `Secret "license" is missing, and the containers wait for it; make it, or correct the field of the spec that names it`

	if got[0].Message != want || got[0].Slot != "a" {
		t.Errorf("want %q, got %+v", want, got)
	}
}
