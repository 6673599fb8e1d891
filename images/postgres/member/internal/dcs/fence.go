// SPDX-License-Identifier: Apache-2.0

package dcs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/fence"
)

// annotationConfig has Patroni's configuration.
const annotationConfig = "config"

// Keys of Patroni's configuration that are about a fence.
const (
	keyPause    = "pause"
	keyFence    = "capstan_fence"
	keyTo       = "capstan_fence_to"
	keySeconds  = "capstan_fence_seconds"
	keyWithdraw = "capstan_fence_withdraw"
)

// fenceTries is how often a change is tried that another one was quicker than.
const fenceTries = 5

// Fence returns what is known of the fence of the scope.
func (c *Client) Fence(ctx context.Context) (fence.Object, error) {
	_, o, err := c.fence(ctx)
	return o, err
}

// SettleFence does what a member of a fenced generation has to do about the fence, and returns what is known of it afterwards.
func (c *Client) SettleFence(ctx context.Context, now time.Time) (fence.Object, error) {
	return c.changeFence(ctx, func(o fence.Object) (fence.Object, bool, error) {
		next, changed := o.Settle(now)
		return next, changed, nil
	})
}

// OfferFence records that the generation with a label, which has an upgrade, asks here before it serves.
func (c *Client) OfferFence(ctx context.Context, id, to string) error {
	_, err := c.changeFence(ctx, func(o fence.Object) (fence.Object, bool, error) { return o.Offer(id, to) })
	return err
}

// CommitFence records that the generation with a label serves.
func (c *Client) CommitFence(ctx context.Context, id, to string) error {
	_, err := c.changeFence(ctx, func(o fence.Object) (fence.Object, bool, error) { return o.Commit(id, to) })
	return err
}

// GiveUpFence records that the generation with a label never serves, unless it does.
func (c *Client) GiveUpFence(ctx context.Context, id, to, why string) error {
	_, err := c.changeFence(ctx, func(o fence.Object) (fence.Object, bool, error) {
		next, changed := o.GiveUp(id, to, why)
		return next, changed, nil
	})
	return err
}

// changeFence writes what a step makes of the object, only if the object is still as it was read.
func (c *Client) changeFence(ctx context.Context, step func(fence.Object) (fence.Object, bool, error)) (fence.Object, error) {
	for try := 1; ; try++ {
		cm, before, err := c.fence(ctx)
		if err != nil {
			return before, err
		}
		after, changed, err := step(before)
		if err != nil || !changed {
			return after, err
		}
		err = c.writeFence(ctx, cm, before, after)
		if err == nil {
			return after, nil
		}
		if try == fenceTries || !kerrors.IsConflict(err) {
			return before, fmt.Errorf("cannot write how the fence of %s is decided: %w", c.scope, err)
		}
	}
}

// fence reads the object, from the API server's storage.
func (c *Client) fence(ctx context.Context) (*corev1.ConfigMap, fence.Object, error) {
	cm, err := c.object(ctx, "config")
	if err != nil {
		return nil, fence.Object{}, fmt.Errorf("cannot find out whether the members of %s are fenced: %w", c.scope, err)
	}
	config, err := parse(cm.Annotations[annotationConfig])
	if err != nil {
		return nil, fence.Object{}, err
	}
	o := fence.Object{
		ID: config.Fence, To: config.To, Limit: time.Duration(config.Seconds) * time.Second, Withdraw: config.Withdraw, Paused: config.Pause,
		Followed: len(config.Slots[members.FollowerSlot]) > 0,
	}
	if text := cm.Annotations[members.AnnotationFence]; text != "" {
		if err := json.Unmarshal([]byte(text), &o.Record); err != nil {
			return nil, fence.Object{}, fmt.Errorf("cannot understand how the fence of %s is decided: %w", c.scope, err)
		}
	}
	return cm, o, nil
}

// writeFence writes a change of the object that was read.
func (c *Client) writeFence(ctx context.Context, cm *corev1.ConfigMap, before, after fence.Object) error {
	record, err := json.Marshal(after.Record)
	if err != nil {
		return err
	}
	annotations := map[string]any{members.AnnotationFence: string(record)}
	if before.ID != after.ID { // all that a step changes in the configuration is that it ends the fence
		open, err := opened(cm.Annotations[annotationConfig])
		if err != nil {
			return err
		}
		annotations[annotationConfig] = open
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": cm.ResourceVersion, "annotations": annotations}})
	if err != nil {
		return err
	}
	return c.kube.REST.Patch(types.MergePatchType).Namespace(c.namespace).Resource("configmaps").Name(cm.Name).Body(body).Do(ctx).Error()
}

// opened is a configuration of Patroni without a fence and its pause.
func opened(config string) (string, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(config), &all); err != nil {
		return "", fmt.Errorf("cannot understand the configuration of Patroni: %w", err)
	}
	for _, key := range []string{keyPause, keyFence, keyTo, keySeconds, keyWithdraw} {
		delete(all, key)
	}
	raw, err := json.Marshal(all)
	return string(raw), err
}
