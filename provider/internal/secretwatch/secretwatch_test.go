// SPDX-License-Identifier: Apache-2.0

package secretwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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

func analysisOf(name string) *v1alpha1.Analysis {
	return &v1alpha1.Analysis{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func newCabinet(t *testing.T, objects ...client.Object) (*cabinet, *Secrets, client.Client, chan types.NamespacedName) {
	t.Helper()
	c := &cabinet{watches: map[types.NamespacedName]*watch.FakeWatcher{}, begun: make(chan types.NamespacedName, 10)}
	kube := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Get: func(
		ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		c.mu.Lock()
		c.reads++
		c.mu.Unlock()
		return k.Get(ctx, key, o, opts...)
	}}).Build()
	woken := make(chan types.NamespacedName, 10)
	s := New(kube, c.watch)
	s.Start(t.Context(), func(of types.NamespacedName) { woken <- of })
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
	a := analysisOf("watch")
	a.UID, a.Spec.ForProvider.Secrets = "1", []string{"license", "absent"}
	tell := func() []string {
		t.Helper()
		found, missing, err := s.Observe(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		a.Status.AtProvider.Secrets = found
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
	b := analysisOf("too")
	b.UID, b.Spec.ForProvider.Secrets = "2", []string{"absent"}
	if _, _, err := s.Observe(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if len(s.known) != 1 || len(s.known[types.NamespacedName{Namespace: "shop", Name: "absent"}].users) != 2 {
		t.Errorf("Only what is named should be watched, and once, got %v", s.known)
	}
	s.Forget("1")
	s.Forget("2")
	if len(s.known) != 0 {
		t.Errorf("What nobody names should be forgotten, got %v", s.known)
	}
}

// TestSecretsUnwatched shows that Secrets are read each time when nobody would tell that they have changed.
func TestSecretsUnwatched(t *testing.T) {
	o := secretOf("license", "7", map[string][]byte{"key": []byte("one")})
	cab, s, _, _ := newCabinet(t, o)
	cab.refuse = errors.New("forbidden")
	a := analysisOf("watch")
	a.UID, a.Spec.ForProvider.Secrets = "1", []string{"license"}
	for range 3 {
		if _, missing, err := s.Observe(t.Context(), a); err != nil || len(missing) != 0 {
			t.Fatal(missing, err)
		}
	}
	if n := cab.count(); n != 3 {
		t.Errorf("want 3 reads, got %d", n)
	}
}

// TestWatchesAreBounded counts the watches that Analyses of one namespace and of many can cause, and what is left of them.
func TestWatchesAreBounded(t *testing.T) {
	reads := 0
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(
		ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		reads++
		return k.Get(ctx, key, o, opts...)
	}}).Build()
	var mu sync.Mutex
	open := 0
	opened := func() int {
		mu.Lock()
		defer mu.Unlock()
		return open
	}
	s := New(kube, func(ctx context.Context, _ types.NamespacedName) (watch.Interface, error) {
		mu.Lock()
		defer mu.Unlock()
		open++
		w := watch.NewFake()
		context.AfterFunc(ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			open--
			w.Stop()
		})
		return w, nil
	})
	clock := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return clock }
	s.Start(t.Context(), func(types.NamespacedName) {})
	settled := func(want int, when string) {
		t.Helper()
		for range 500 {
			if opened() == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s: want %d watches, got %d", when, want, opened())
	}
	look := func(namespace string, i int) {
		t.Helper()
		a := analysisOf(fmt.Sprint("a-", i))
		a.Namespace, a.UID = namespace, types.UID(fmt.Sprint(namespace, i))
		for n := range 16 {
			a.Spec.ForProvider.Secrets = append(a.Spec.ForProvider.Secrets, fmt.Sprint("secret-", i, "-", n))
		}
		if _, _, err := s.Observe(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		look("shop", i)
	}
	settled(mostOfNamespace, "100 Analyses of one namespace")
	reads = 0
	look("shop", 99)
	if reads != 0 {
		t.Errorf("What is not watched should not be read at each look, got %d reads", reads)
	}
	clock = clock.Add(pollEvery)
	look("shop", 99)
	if reads != 16 {
		t.Errorf("What is not watched should be read after %s, got %d reads", pollEvery, reads)
	}
	for i := range 8 { // which have all watches
		s.Forget(types.UID(fmt.Sprint("shop", i)))
	}
	settled(0, "without those that were watched")
	look("shop", 99)
	settled(16, "after another look of one that was not watched")
	for n := range 30 {
		for i := range 8 {
			look(fmt.Sprint("namespace-", n), i)
		}
	}
	settled(most, "many namespaces")
	for i := range 100 {
		s.Forget(types.UID(fmt.Sprint("shop", i)))
	}
	for n := range 30 {
		for i := range 8 {
			s.Forget(types.UID(fmt.Sprintf("namespace-%d%d", n, i)))
		}
	}
	settled(0, "after all are gone")
	if len(s.known)+len(s.used)+len(s.watches)+s.total != 0 {
		t.Errorf("Nothing should be kept of what is gone, got %d, %d, %d and %d", len(s.known), len(s.used), len(s.watches), s.total)
	}
}
