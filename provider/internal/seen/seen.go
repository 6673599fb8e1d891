// SPDX-License-Identifier: Apache-2.0

// Package seen makes the caches of quiet kinds: each holds the objects of others that one controller looks at, and of each what it looks at.
package seen

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects of one kind in a cache.
type Objects struct {
	// Kind that is held, as an empty object.
	Kind client.Object

	// Having are keys of labels that an object needs to be held. Default: all objects are.
	Having []string

	// Slim makes of an object what is held of it. A list that is streamed goes through it twice (see TransformFunc), so it keeps what it made
	// itself.
	Slim toolscache.TransformFunc

	// Index of the objects by name: lists by a field of that name do not go through all of them.
	Index map[string]client.IndexerFunc
}

// New makes a cache of these objects, which starts with the manager, beside its own cache. It fails where something is read that it
// does not hold.
func New(mgr ctrl.Manager, of ...Objects) (cache.Cache, error) {
	by := map[client.Object]cache.ByObject{}
	for _, o := range of {
		// Keys alone select the objects that have them, and no key selects all.
		labelled, err := labels.Parse(strings.Join(o.Having, ","))
		if err != nil {
			return nil, fmt.Errorf("cannot select objects by %q: %w", o.Having, err)
		}
		by[o.Kind] = cache.ByObject{Label: labelled, Transform: o.Slim}
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:                      mgr.GetScheme(),
		Mapper:                      mgr.GetRESTMapper(),
		HTTPClient:                  mgr.GetHTTPClient(),
		ReaderFailOnMissingInformer: true,
		ByObject:                    by,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache: %w", err)
	}
	for _, o := range of {
		for name, by := range o.Index {
			if err := c.IndexField(context.Background(), o.Kind, name, by); err != nil {
				return nil, fmt.Errorf("cannot index a cache by %q: %w", name, err)
			}
		}
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("cannot start a cache: %w", err)
	}
	return c, nil
}

// Meta is what is held of an object at least, with the labels and annotations of these keys.
func Meta(o client.Object, keptLabels, keptAnnotations []string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         o.GetNamespace(),
		Name:              o.GetName(),
		UID:               o.GetUID(),
		ResourceVersion:   o.GetResourceVersion(),
		DeletionTimestamp: o.GetDeletionTimestamp(),
		Labels:            kept(o.GetLabels(), keptLabels),
		Annotations:       kept(o.GetAnnotations(), keptAnnotations),
	}
}

func kept(all map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if v, ok := all[k]; ok {
			out[k] = v
		}
	}
	return out
}
