// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	_ "embed"
)

//go:embed algorithm.yaml
var algorithm []byte

var (
	algorithms   = schema.GroupVersionResource{Group: "capstan.dev", Version: "v1alpha1", Resource: "algorithms"}
	namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	compositions = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositions"}
)

// senders is how many requests of the load may be on their way at once. A rate is kept as long as the API server answers fast enough.
const senders = 32

// A name of an Algorithm.
type name struct{ namespace, name string }

func (n name) key() string { return key(n.namespace, n.name) }

// names of n Algorithms, perNamespace in each namespace.
func names(prefix string, n, perNamespace int) []name {
	all := make([]name, n)
	for i := range all {
		all[i] = name{fmt.Sprintf("%s-%03d", prefix, i/perNamespace), fmt.Sprintf("reco-%02d", i%perNamespace)}
	}
	return all
}

// A load is what tenants do.
type load struct {
	client   dynamic.Interface
	observer *observer
}

// paced runs do for each of n numbers, so many a second, and returns when all have ended.
func paced(ctx context.Context, n int, rate float64, do func(ctx context.Context, i int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(senders)
	begin := time.Now()
	for i := range n {
		select {
		case <-ctx.Done():
			return all.Wait()
		case <-time.After(time.Until(begin.Add(time.Duration(float64(i) / rate * float64(time.Second))))):
		}
		all.Go(func() error { return do(ctx, i) })
	}
	return all.Wait()
}

// create Algorithms, so many a second, and add to ready how long each takes to become Ready.
func (l load) create(ctx context.Context, all []name, rate float64, ready *durations) error {
	made := map[string]bool{}
	for _, n := range all {
		if made[n.namespace] {
			continue
		}
		made[n.namespace] = true
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": n.namespace}}}
		if _, err := l.client.Resource(namespaces).Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create namespace %q: %w", n.namespace, err)
		}
	}
	ready.want += len(all)
	return paced(ctx, len(all), rate, func(ctx context.Context, i int) error {
		a := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(algorithm, &a.Object); err != nil {
			return fmt.Errorf("cannot read the Algorithm: %w", err)
		}
		a.SetNamespace(all[i].namespace)
		a.SetName(all[i].name)
		if err := unstructured.SetNestedField(a.Object, all[i].name+"."+all[i].namespace+".example.org", "spec", "route", "host"); err != nil {
			return fmt.Errorf("cannot give the Algorithm a host: %w", err)
		}
		since := time.Now()
		if _, err := l.client.Resource(algorithms).Namespace(all[i].namespace).Create(ctx, a, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot create Algorithm %q: %w", all[i].key(), err)
		}
		l.observer.await(all[i].key(), awaited{since: since, done: ready.add})
		return nil
	})
}

// edit Algorithms in turn, so many edits a second, and add to applied how long each takes until Crossplane has applied all objects.
func (l load) edit(ctx context.Context, all []name, edits int, rate float64, applied *durations) error {
	applied.want += edits
	return paced(ctx, edits, rate, func(ctx context.Context, i int) error {
		n := all[i%len(all)]
		// No two edits of an object that follow one another are alike.
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"scaling": map[string]any{"maxReplicas": 6 + i/len(all)%2}}})
		if err != nil {
			return fmt.Errorf("cannot encode an edit: %w", err)
		}
		since := time.Now()
		a, err := l.client.Resource(algorithms).Namespace(n.namespace).Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("cannot edit Algorithm %q: %w", n.key(), err)
		}
		l.observer.await(n.key(), awaited{generation: a.GetGeneration(), since: since, done: applied.add})
		return nil
	})
}

// revise the Composition of Algorithms, as a new version of the package does: its objects stay what they are.
func (l load) revise(ctx context.Context) error {
	patch := []byte(`[{"op": "replace", "path": "/spec/pipeline/0/step", "value": "capstan-next"}]`)
	if _, err := l.client.Resource(compositions).Patch(ctx, "algorithm", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("cannot revise the Composition: %w", err)
	}
	return nil
}

// remove Algorithms, a namespace at a time.
func (l load) remove(ctx context.Context, all []name) error {
	gone := map[string]bool{}
	for _, n := range all {
		if gone[n.namespace] {
			continue
		}
		gone[n.namespace] = true
		err := l.client.Resource(algorithms).Namespace(n.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("cannot delete the Algorithms of %q: %w", n.namespace, err)
		}
	}
	return nil
}
