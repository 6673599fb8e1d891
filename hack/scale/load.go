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
)

var (
	namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	compositions = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositions"}
)

// senders is how many requests of the load may be on their way at once. A rate is kept as long as the API server answers fast enough.
const senders = 32

// A load is what tenants do.
type load struct {
	client dynamic.Interface
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

// create objects of a fleet, so many a second, and add to ready how long each takes to become Ready.
func (l load) create(ctx context.Context, f fleet, all []name, rate float64, ready *durations) error {
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
		o, err := f.object(all[i])
		if err != nil {
			return err
		}
		since := time.Now()
		if _, err := l.client.Resource(f.at).Namespace(all[i].namespace).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot create %s %q: %w", o.GetKind(), all[i].key(), err)
		}
		f.await(all[i].key(), awaited{since: since, done: ready.add})
		return nil
	})
}

// edit Algorithms in turn, so many edits a second, and add to applied how long each takes until Crossplane has applied all objects.
func (l load) edit(ctx context.Context, f fleet, all []name, edits int, rate float64, applied *durations) error {
	applied.want += edits
	return paced(ctx, edits, rate, func(ctx context.Context, i int) error {
		n := all[i%len(all)]
		// No two edits of an object that follow one another are alike.
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"scaling": map[string]any{"maxReplicas": 6 + i/len(all)%2}}})
		if err != nil {
			return fmt.Errorf("cannot encode an edit: %w", err)
		}
		since := time.Now()
		a, err := l.client.Resource(f.at).Namespace(n.namespace).Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("cannot edit Algorithm %q: %w", n.key(), err)
		}
		f.await(n.key(), awaited{generation: a.GetGeneration(), since: since, done: applied.add})
		return nil
	})
}

// revise the Composition of a fleet, as a new version of the package does: its objects stay what they are.
func (l load) revise(ctx context.Context, f fleet) error {
	patch := []byte(`[{"op": "replace", "path": "/spec/pipeline/0/step", "value": "capstan-next"}]`)
	if _, err := l.client.Resource(compositions).Patch(ctx, f.composition, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("cannot revise the Composition of %s: %w", f.title, err)
	}
	return nil
}

// remove objects of a fleet, a namespace at a time.
func (l load) remove(ctx context.Context, f fleet, all []name) error {
	gone := map[string]bool{}
	for _, n := range all {
		if gone[n.namespace] {
			continue
		}
		gone[n.namespace] = true
		err := l.client.Resource(f.at).Namespace(n.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("cannot delete the %s of %q: %w", f.title, n.namespace, err)
		}
	}
	return nil
}
