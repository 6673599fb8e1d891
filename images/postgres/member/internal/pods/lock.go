// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// annotationHolder of the object that is the leader's lock names the pod that has it.
const annotationHolder = "leader"

// A Lock is the leader's lock as it was seen.
type Lock struct {
	// Holder is the pod that has it, or nothing.
	Holder string
	// Version of the object, which changes each time that the lock is renewed.
	Version string
}

// Locks calls a function with the leader's lock of a scope as it is, and whenever it changes, until the stream or the context ends.
func (c *Client) Locks(ctx context.Context, scope string, seen func(Lock)) error {
	one := fields.OneTermEqualSelector("metadata.name", scope+"-leader").String()
	stream, err := c.stream.Get().Namespace(c.namespace).Resource("configmaps").Param("fieldSelector", one).Param("watch", "true").Watch(ctx)
	if err != nil {
		return fmt.Errorf("cannot watch the leader's lock: %w", err)
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		switch o := e.Object.(type) {
		case *corev1.ConfigMap:
			seen(Lock{Holder: o.Annotations[annotationHolder], Version: o.ResourceVersion})
		case *metav1.Status:
			return fmt.Errorf("cannot watch the leader's lock: %w", kerrors.FromObject(o))
		}
	}
	return ctx.Err()
}

// Lifetime is how long a lock of a scope must not have been renewed until its holder is sure to have given up: it looks once in
// loop_wait, and what it asks the API server for may take retry_timeout, twice. Patroni's ttl is at least that, and never less than
// 20 s. It is 0 while nobody is to be promoted.
func (c *Client) Lifetime(ctx context.Context, scope string) (time.Duration, error) {
	config, err := c.config(ctx, scope)
	if err != nil {
		return 0, fmt.Errorf("cannot find out how long a lock lives: %w", err)
	}
	if config.Pause || config.LoopWait <= 0 || config.RetryTimeout <= 0 {
		return 0, nil
	}
	return time.Duration(config.LoopWait+2*config.RetryTimeout) * time.Second, nil
}

// Release the leader's lock of a scope for its holder, in the way that Patroni does it. It fails with a conflict when the lock was
// renewed in the meantime.
func (c *Client) Release(ctx context.Context, scope string, seen Lock) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": seen.Version, "annotations": map[string]any{annotationHolder: nil},
	}})
	if err != nil {
		return fmt.Errorf("cannot release the leader's lock: %w", err)
	}
	err = c.rest.Patch(types.MergePatchType).Namespace(c.namespace).Resource("configmaps").Name(scope + "-leader").Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("cannot release the leader's lock: %w", err)
	}
	return nil
}
