// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A witness records every change of an Algorithm's objects, however short.
type witness struct {
	mu sync.Mutex

	// began is when the record did, to the second, as conditions have it.
	began time.Time

	// fewest ready endpoints of the Algorithm's Service at a time.
	fewest  int
	bySlice map[string]int

	// pods that have existed, and those that still exist and are not being deleted, by slot.
	pods    map[types.UID]bool
	staying map[string]map[types.UID]bool
	// restarts of containers.
	restarts int32

	// switches are when traffic shifted to a slot. The first is the slot at the beginning.
	switches []slotSwitch

	// broken conditions that were True and turned False, and how often Crossplane stopped processing events.
	broken       []string
	unresponsive []string

	wakings wakings

	stop []func()
}

type slotSwitch struct {
	slot string
	at   time.Time
}

// composedKinds are the kinds that an Algorithm composes and that another client also writes to, or that change with a
// revision.
var composedKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "ControllerRevision"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"},
	{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "Analysis"},
}

// breakerCost is the cost of a change of an object in Crossplane's circuit breaker. It has 100 tokens, gets one per
// second, and stops processing events at none.
const breakerCost = 2

// wakings are the events that wake up Crossplane, by kind.
type wakings struct {
	mu     sync.Mutex
	events map[string]int
}

func (w *wakings) add(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events == nil {
		w.events = map[string]int{}
	}
	w.events[kind]++
}

// count events of some kinds from now on, until the test ends or the returned function is called.
func (w *wakings) count(t *testing.T, kinds []schema.GroupVersionKind, options ...client.ListOption) (stop []func()) {
	t.Helper()
	for _, gvk := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		stop = append(stop, watching(t, list, func(watch.EventType, *metav1.PartialObjectMetadata) { w.add(gvk.Kind) }, options...))
	}

	return stop
}

// cost of the events since the last call, by kind.
func (w *wakings) cost() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	var words []string
	for _, k := range slices.Sorted(maps.Keys(w.events)) {
		total += w.events[k]
		words = append(words, fmt.Sprintf("%d %s", w.events[k], k))
	}
	clear(w.events)

	return fmt.Sprintf("%d events, which cost the circuit breaker up to %d of its 100 tokens: %s", total, breakerCost*total, strings.Join(words, ", "))
}

// watching follows objects until the test ends or the returned function is called. It lists them and watches from there on: a
// watch that names no version begins with objects as the cache of the API server has them, which may be older than what the test
// has already read.
func watching[T client.Object](t *testing.T, list client.ObjectList, see func(watch.EventType, T), options ...client.ListOption) func() {
	t.Helper()
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.NewWithWatch(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begin := func() (watch.Interface, error) {
		list := list.DeepCopyObject().(client.ObjectList)
		if err := w.List(ctx, list, options...); err != nil {
			return nil, err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			if o, ok := o.(T); ok {
				see(watch.Added, o)
			}

			return nil
		}); err != nil {
			return nil, err
		}
		from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}

		return w.Watch(ctx, list, append(slices.Clone(options), from)...)
	}
	events, err := begin()
	if err != nil {
		t.Fatalf("cannot watch %T: %v", list, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			for e := range events.ResultChan() {
				if o, ok := e.Object.(T); ok {
					see(e.Type, o)
				}
			}
			// The API server ends a watch from time to time, for instance when a definition changes.
			if ctx.Err() != nil {
				return
			}
			t.Logf("the watch of %T ended, and begins again", list)
			if events, err = begin(); err != nil {
				if ctx.Err() == nil {
					t.Errorf("cannot watch %T any more: %v", list, err)
				}

				return
			}
		}
	}()

	return func() {
		cancel()
		<-done
	}
}

// witnessOf an Algorithm that is Ready.
func witnessOf(t *testing.T, ns, name string) *witness {
	t.Helper()
	w := &witness{began: time.Now().Truncate(time.Second), fewest: -1, bySlice: map[string]int{}, pods: map[types.UID]bool{}, staying: map[string]map[types.UID]bool{"a": {}, "b": {}}}
	in := client.InNamespace(ns)
	named := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
	w.stop = []func(){
		watching(t, &discoveryv1.EndpointSliceList{}, w.seeEndpoints, in, client.MatchingLabels{discoveryv1.LabelServiceName: name}),
		watching(t, &corev1.PodList{}, w.seePod, in, client.MatchingLabels{"capstan.dev/algorithm": name}),
		watching(t, &corev1.ServiceList{}, w.seeService, in, named),
		watching(t, &v1alpha1.AlgorithmList{}, w.seeAlgorithm, in, named),
	}
	w.stop = append(w.stop, w.wakings.count(t, composedKinds, in, client.MatchingLabels{"capstan.dev/algorithm": name})...)
	eventually(t, "the witness sees "+name, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.fewest < 1 || len(w.pods) == 0 || len(w.switches) == 0 {
			return fmt.Errorf("%d endpoints, %d pods", w.fewest, len(w.pods))
		}

		return nil
	})
	// Objects that exist at the start are not events.
	w.wakings.cost()

	return w
}

func (w *witness) seeEndpoints(e watch.EventType, s *discoveryv1.EndpointSlice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bySlice[s.Name] = 0
	for _, p := range s.Endpoints {
		if e != watch.Deleted && p.Conditions.Ready != nil && *p.Conditions.Ready {
			w.bySlice[s.Name]++
		}
	}
	total := 0
	for n := range maps.Values(w.bySlice) {
		total += n
	}
	if w.fewest < 0 || total < w.fewest {
		w.fewest = total
	}
}

func (w *witness) seePod(e watch.EventType, p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[p.UID] = true
	for _, c := range p.Status.ContainerStatuses {
		w.restarts = max(w.restarts, c.RestartCount)
	}
	slot := p.Labels["capstan.dev/slot"]
	if e == watch.Deleted || p.DeletionTimestamp != nil {
		delete(w.staying[slot], p.UID)
	} else {
		w.staying[slot][p.UID] = true
	}
}

func (w *witness) seeService(_ watch.EventType, s *corev1.Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slot := s.Spec.Selector["capstan.dev/slot"]
	if n := len(w.switches); n == 0 || w.switches[n-1].slot != slot {
		w.switches = append(w.switches, slotSwitch{slot: slot, at: time.Now()})
	}
}

func (w *witness) seeAlgorithm(_ watch.EventType, a *v1alpha1.Algorithm) {
	w.wakings.add("Algorithm")
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := a.Status.GetCondition("Responsive"); c.Status == corev1.ConditionFalse {
		w.unresponsive = append(w.unresponsive, c.Message)
	}
	for _, ct := range []xpv2.ConditionType{xpv2.TypeReady, v1alpha1.TypePodsHealthy} {
		// One that turned False before the Algorithm was Ready is not news. Crossplane writes the status twice in each pass. The first time
		// it applies the conditions as its cache had them when the pass began, which may be those from before its own last write.
		if c := a.Status.GetCondition(ct); c.Status == corev1.ConditionFalse && !c.LastTransitionTime.Time.Before(w.began) {
			w.broken = append(w.broken, fmt.Sprintf("%s, %s: %s", ct, c.Reason, c.Message))
		}
	}
}

// podsOf a slot that exist and are not being deleted.
func (w *witness) podsOf(slot string) map[types.UID]bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return maps.Clone(w.staying[slot])
}

// switched returns when traffic last shifted to another slot, and how often it did.
func (w *witness) switched() (time.Time, int) {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.switches[len(w.switches)-1].at, len(w.switches) - 1
}

// end the recording. It fails the test if there was a moment without a ready pod, a container started twice, a
// condition that should hold turned False, or if there were more pods or switches than expected.
func (w *witness) end(t *testing.T, pods, switches int) {
	t.Helper()
	for _, stop := range w.stop {
		stop()
	}
	if w.fewest < 1 {
		t.Errorf("at a time %d endpoints were ready", w.fewest)
	}
	if len(w.pods) != pods || w.restarts != 0 {
		t.Errorf("there have been %d pods, of which one was started again up to %d times, want %d and 0", len(w.pods), w.restarts, pods)
	}
	if got := len(w.switches) - 1; got != switches {
		t.Errorf("callers were sent to another slot %d times, want %d: %v", got, switches, w.switches)
	}
	if len(w.broken) > 0 {
		t.Errorf("conditions turned False:\n%s", strings.Join(w.broken, "\n"))
	}
	if len(w.unresponsive) > 0 {
		t.Logf("Crossplane stopped listening for a while: %s", w.unresponsive[0])
	}
	t.Logf("never fewer than %d endpoints were ready; %d pods, none restarted; %d switches", w.fewest, len(w.pods), switches)
}
