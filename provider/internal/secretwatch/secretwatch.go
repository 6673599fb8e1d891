// SPDX-License-Identifier: Apache-2.0

// Package secretwatch knows the fingerprints of the Secrets that Analyses name. It watches each Secret once, reads it when it has
// changed, and keeps nothing of it except its fingerprint. What is beyond the number of watches is read from time to time.
package secretwatch

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// watchFor is how long a watch lasts at most, after which it is begun again. Up to half as long less, so that watches that
	// were begun together do not end together.
	watchFor = time.Hour
	// Waits after a watch that failed.
	firstRetry, lastRetry = time.Second, time.Minute
	// fingerprintBytes of the digest are reported.
	fingerprintBytes = 8

	// Watches of a namespace and of all, because each costs some ten KiB of memory and a stream. Beyond them a Secret is read when an
	// Analysis looks, and not again for pollEvery.
	mostOfNamespace, most = 128, 2048

	pollEvery = time.Minute
)

// A Watcher watches one Secret. Its events may be without content: only their arrival counts.
type Watcher func(ctx context.Context, of types.NamespacedName) (watch.Interface, error)

// Metadata watches a Secret by its name alone, as a kubelet does, and only its metadata: nothing of any other Secret reaches the
// provider.
func Metadata(c metadata.Interface) Watcher {
	return func(ctx context.Context, of types.NamespacedName) (watch.Interface, error) {
		lasts := int64((watchFor - rand.N(watchFor/2)).Seconds()) //nolint:gosec // Not a secret.
		w, err := c.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(of.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector:  fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String(),
			TimeoutSeconds: &lasts,
		})
		if err != nil {
			return nil, fmt.Errorf("cannot watch Secret %q: %w", of.Name, err)
		}
		return w, nil
	}
}

// Secrets that Analyses name.
type Secrets struct {
	kube  client.Reader
	watch Watcher
	mu    sync.Mutex
	run   context.Context //nolint:containedctx // Watches last as long as the controller, and no single call does.
	wake  func(types.NamespacedName)
	known map[types.NamespacedName]*secret

	// used are the Secrets that each Analysis names, watches how many are watched by namespace, and total in all.
	used    map[types.UID]map[types.NamespacedName]bool
	watches map[string]int
	total   int
	now     func() time.Time
}

// A secret that is watched.
type secret struct {
	// users are the Analyses that name it.
	users map[types.UID]types.NamespacedName
	stop  context.CancelFunc
	// watched means that changes are seen, changes is how many were.
	watched bool
	changes int
	// fingerprint, or "" when there is no such Secret. It is current if read is true.
	read        bool
	readAt      time.Time
	fingerprint string
}

// New knows no Secret yet.
func New(kube client.Reader, w Watcher) *Secrets {
	return &Secrets{
		kube: kube, watch: w, now: time.Now, known: map[types.NamespacedName]*secret{},
		used: map[types.UID]map[types.NamespacedName]bool{}, watches: map[string]int{},
	}
}

// Start watching, until ctx ends. Users of what has changed are woken.
func (s *Secrets) Start(ctx context.Context, wake func(types.NamespacedName)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.wake = ctx, wake
	for of, k := range s.known {
		s.follow(of, k)
	}
}

// Observe the fingerprints of the Secrets of an Analysis, and which of them are missing.
func (s *Secrets) Observe(ctx context.Context, cr *v1alpha1.Analysis) (found []v1alpha1.SecretObservation, missing []string, err error) {
	s.use(cr)
	for _, name := range slices.Sorted(slices.Values(cr.Spec.ForProvider.Secrets)) {
		f, err := s.fingerprint(ctx, types.NamespacedName{Namespace: cr.GetNamespace(), Name: name})
		switch {
		case err != nil:
			return nil, nil, err
		case f == "":
			missing = append(missing, name)
		default:
			found = append(found, v1alpha1.SecretObservation{Name: name, Fingerprint: f})
		}
	}
	return found, missing, nil
}

// use the Secrets that an Analysis names, and no others.
func (s *Secrets) use(cr *v1alpha1.Analysis) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(cr.GetUID(), func(of types.NamespacedName) bool {
		return of.Namespace == cr.GetNamespace() && slices.Contains(cr.Spec.ForProvider.Secrets, of.Name)
	})
	for _, name := range cr.Spec.ForProvider.Secrets {
		of := types.NamespacedName{Namespace: cr.GetNamespace(), Name: name}
		k := s.known[of]
		if k == nil {
			k = &secret{users: map[types.UID]types.NamespacedName{}}
			s.known[of] = k
		}
		// One that is beyond the number of watches may be within it now.
		s.follow(of, k)
		k.users[cr.GetUID()] = client.ObjectKeyFromObject(cr)
		if s.used[cr.GetUID()] == nil {
			s.used[cr.GetUID()] = map[types.NamespacedName]bool{}
		}
		s.used[cr.GetUID()][of] = true
	}
}

// Forget an Analysis that is gone.
func (s *Secrets) Forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(uid, func(types.NamespacedName) bool { return false })
}

// release the Secrets that an Analysis uses, except some. A watch ends with its last user.
func (s *Secrets) release(uid types.UID, but func(types.NamespacedName) bool) {
	for of := range s.used[uid] {
		if but(of) {
			continue
		}
		delete(s.used[uid], of)
		k := s.known[of]
		delete(k.users, uid)
		if len(k.users) > 0 {
			continue
		}
		if k.stop != nil {
			k.stop()
			s.count(of.Namespace, -1)
		}
		delete(s.known, of)
	}
	if len(s.used[uid]) == 0 {
		delete(s.used, uid)
	}
}

// count a watch of a namespace that begins or ends.
func (s *Secrets) count(namespace string, n int) {
	s.total += n
	s.watches[namespace] += n
	if s.watches[namespace] == 0 {
		delete(s.watches, namespace)
	}
}

// fingerprint of a Secret, or "" when it is not there. It is read when it may have changed: without a watch, each time.
func (s *Secrets) fingerprint(ctx context.Context, of types.NamespacedName) (string, error) {
	s.mu.Lock()
	k := s.known[of]
	if k == nil {
		k = &secret{}
	}
	polled := s.run != nil && k.stop == nil && s.now().Sub(k.readAt) < pollEvery
	if k.read || polled {
		defer s.mu.Unlock()
		return k.fingerprint, nil
	}
	changes := k.changes
	s.mu.Unlock()
	o, f := &corev1.Secret{}, ""
	err := s.kube.Get(ctx, of, o)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("cannot get Secret %q: %w", of.Name, err)
	}
	if !kerrors.IsNotFound(err) {
		f = fingerprint(o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.fingerprint, k.read, k.readAt = f, k.watched && k.changes == changes, s.now()
	return f, nil
}

// fingerprint of the content of a Secret, which reveals nothing about it: it is keyed with the UID, which only those know who may
// read the Secret, and is another when the Secret is recreated.
func fingerprint(o *corev1.Secret) string {
	h := hmac.New(sha256.New, []byte(o.GetUID()))
	write := func(b []byte) {
		// The length first, so that no two contents are written alike.
		_ = binary.Write(h, binary.BigEndian, uint64(len(b)))
		_, _ = h.Write(b)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Data)) {
		write([]byte(key))
		write(o.Data[key])
	}
	return hex.EncodeToString(h.Sum(nil)[:fingerprintBytes])
}

// follow a Secret as long as it is used, unless there are too many watches.
func (s *Secrets) follow(of types.NamespacedName, k *secret) {
	if s.run == nil || k.stop != nil || s.watches[of.Namespace] >= mostOfNamespace || s.total >= most {
		return
	}
	s.count(of.Namespace, 1)
	ctx, stop := context.WithCancel(s.run)
	k.stop = stop
	go func() {
		retry := firstRetry
		for ctx.Err() == nil {
			w, err := s.watch(ctx, of)
			if err == nil {
				retry = firstRetry
				s.hear(k, w)
				continue
			}
			select {
			case <-ctx.Done():
			case <-time.After(retry):
				retry = min(2*retry, lastRetry)
			}
		}
	}()
}

// hear a watch to its end. It begins with what the Secret is like, so that nothing between two watches is missed but its
// deletion: so it may have changed then.
func (s *Secrets) hear(k *secret, w watch.Interface) {
	defer w.Stop()
	s.changed(k)
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			break
		}
		if e.Type != watch.Bookmark {
			s.changed(k)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.watched, k.read = false, false
}

// changed is called when a watched Secret may be another one than was read.
func (s *Secrets) changed(k *secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.watched, k.read = true, false
	k.changes++
	for _, u := range k.users {
		s.wake(u)
	}
}
