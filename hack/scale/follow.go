// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// A progress of one composite resource.
type progressed struct {
	ready bool
	// synced is the newest generation whose objects Crossplane has applied.
	synced int64
}

// An awaited generation, and since when. Generation 0 waits until the object is Ready.
type awaited struct {
	generation int64
	since      time.Time
	done       func(time.Duration)
}

// An observer watches all composite resources of a kind, and reports when each has come how far.
type observer struct {
	mu      sync.Mutex
	objects map[string]progressed
	waiting map[string][]awaited
}

// follow until ctx ends.
func follow(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource) (*observer, error) {
	f := &observer{objects: map[string]progressed{}, waiting: map[string][]awaited{}}
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := informers.ForResource(gvr).Informer()
	see := func(o any) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			f.see(key(u.GetNamespace(), u.GetName()), progressOf(u), time.Now())
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, o any) { see(o) },
		DeleteFunc: func(o any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				f.forget(name)
			}
		},
	}); err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}
	informers.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("cannot watch %s: %w", gvr.Resource, context.Cause(ctx))
	}
	return f, nil
}

func key(namespace, name string) string { return namespace + "/" + name }

func progressOf(u *unstructured.Unstructured) progressed {
	var p progressed
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		generation, _, _ := unstructured.NestedInt64(m, "observedGeneration")
		switch {
		case m["type"] == "Ready":
			p.ready = m["status"] == string(metav1.ConditionTrue)
		case m["type"] == "Synced" && m["status"] == string(metav1.ConditionTrue):
			p.synced = generation
		}
	}
	return p
}

func (f *observer) see(name string, p progressed, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[name] = p
	f.waiting[name] = slices.DeleteFunc(f.waiting[name], func(w awaited) bool {
		if w.generation == 0 && !p.ready || w.generation > p.synced {
			return false
		}
		w.done(now.Sub(w.since))
		return true
	})
}

func (f *observer) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, name)
	delete(f.waiting, name)
}

// await has done called when the object has come as far as that.
func (f *observer) await(name string, w awaited) {
	f.mu.Lock()
	f.waiting[name] = append(f.waiting[name], w)
	p, seen := f.objects[name]
	f.mu.Unlock()
	if seen {
		f.see(name, p, time.Now()) // It may have come so far before this.
	}
}

// count of objects, and of Ready ones among them.
func (f *observer) count() (all, ready int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.objects {
		if p.ready {
			ready++
		}
	}
	return len(f.objects), ready
}

// durations of many waits.
type durations struct {
	mu   sync.Mutex
	all  []time.Duration
	want int
}

func (d *durations) add(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, t)
}

func (d *durations) missing() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.want - len(d.all)
}

// quantile of the durations that have ended, the nearest that is not smaller; 0 without any.
func (d *durations) quantile(q float64) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d.all))
	i := int(q*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
