// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capstan-dev/capstan/apis/members"
)

// ErrNotHolder says that another member holds the leader's lock, or none does.
var ErrNotHolder = errors.New("this member does not hold the leader's lock")

// Holds checks that this member holds the leader's lock at this moment. The error is ErrNotHolder when it does not.
type Holds func(ctx context.Context) error

// SetRole writes the role of this member, and reports whether anything had to be written. The leader takes the label from all
// others. One that was cut off cannot remove its own label, and a Service would send half of the clients to it.
//
// Only the member that holds the leader's lock takes the label. Patroni alone does not know: a leader that was frozen or cut off
// takes itself for the leader until its own time is up, or until it has stopped.
//
// The context has to end soon after the role was found out: a process that was frozen in between must not continue with an
// outdated role.
func (c *Client) SetRole(ctx context.Context, role string, holds Holds) (bool, error) {
	if role == members.RoleLeader {
		return c.lead(ctx, holds)
	}
	p, err := c.get(ctx)
	if err != nil {
		return false, err
	}
	if p.Labels[members.LabelRole] == role {
		return false, nil
	}
	return true, c.label(ctx, c.pod, role, "")
}

// leadTries is how often the label is taken when pods change at the same moment.
const leadTries = 3

// lead takes the label, again when a pod changed after it was read.
func (c *Client) lead(ctx context.Context, holds Holds) (wrote bool, err error) {
	for range leadTries {
		if wrote, err = c.takeLabel(ctx, holds); !kerrors.IsConflict(err) {
			return wrote, err
		}
	}
	return wrote, err
}

// takeLabel takes the label from others and gives it to this member, if this member holds the lock. A pod that may still take writes loses the
// label first. A pod whose own status says that it handed over keeps the label until this member has it.
//
// Otherwise a Service would have no pod for a moment: no server would answer the next try of its clients, which then takes a
// second. Proxies would learn of the new leader up to a second later, because they had just learned that there was none.
func (c *Client) takeLabel(ctx context.Context, holds Holds) (wrote bool, err error) {
	leaders, err := c.list(ctx, labels.Set{members.LabelDatabase: c.database, members.LabelRole: members.RoleLeader})
	if err != nil {
		return false, err
	}
	own := false
	var first, last []corev1.Pod
	for _, p := range leaders {
		switch {
		case p.Name == c.pod:
			own = true
		case HandedOver(p.Annotations["status"]):
			last = append(last, p)
		default:
			first = append(first, p)
		}
	}
	if own && len(first)+len(last) == 0 {
		return false, nil
	}
	if err := holds(ctx); err != nil {
		return false, err
	}
	if err := c.unlabel(ctx, first); err != nil {
		return true, err
	}
	if !own {
		if err := c.labelHolder(ctx, holds); err != nil {
			return true, err
		}
	}
	return true, c.unlabel(ctx, last)
}

// labelHolder gives the label to this member, and takes it back if the lock went to another one at the same moment.
func (c *Client) labelHolder(ctx context.Context, holds Holds) error {
	if err := c.label(ctx, c.pod, members.RoleLeader, ""); err != nil {
		return err
	}
	err := holds(ctx)
	if errors.Is(err, ErrNotHolder) {
		return errors.Join(err, c.label(ctx, c.pod, "", ""))
	}
	return nil // an API server that does not answer at this moment takes no lock away
}

// Unlead takes the label of the leader from all pods of the Database.
func (c *Client) Unlead(ctx context.Context) error {
	leaders, err := c.list(ctx, labels.Set{members.LabelDatabase: c.database, members.LabelRole: members.RoleLeader})
	if err != nil {
		return err
	}
	return c.unlabel(ctx, leaders)
}

// HandedOver reports whether a status, as Patroni writes it on its pod, says that the member stopped being the leader and that
// PostgreSQL does not run.
func HandedOver(status string) bool {
	var s struct {
		State string `json:"state"`
		Role  string `json:"role"`
	}
	return json.Unmarshal([]byte(status), &s) == nil && s.Role == "demoted" && (s.State == "stopping" || s.State == "stopped")
}

// unlabel pods that lead no more, as they were read. Those that are gone need nothing.
func (c *Client) unlabel(ctx context.Context, pods []corev1.Pod) error {
	for _, p := range pods {
		if err := c.label(ctx, p.Name, "", p.ResourceVersion); err != nil && !kerrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// label a pod with a role, or with none. With a version, only if the pod still has it.
func (c *Client) label(ctx context.Context, pod, role, version string) error {
	var value any
	if role != "" {
		value = role
	}
	if err := c.patch(ctx, pod, "labels", members.LabelRole, value, version); err != nil {
		return fmt.Errorf("cannot label pod %q with the role %q: %w", pod, role, err)
	}
	return nil
}

// WatchRoles calls a function with the name and role of each pod of the Database that changes, until the stream or the context ends.
func (c *Client) WatchRoles(ctx context.Context, observe func(pod, role string)) error {
	stream, err := c.stream.Get().Namespace(c.namespace).Resource("pods").
		Param("labelSelector", labels.Set{members.LabelDatabase: c.database}.String()).Param("watch", "true").Watch(ctx)
	if err != nil {
		return fmt.Errorf("cannot watch the pods of the Database: %w", err)
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		switch o := e.Object.(type) {
		case *corev1.Pod:
			observe(o.Name, o.Labels[members.LabelRole])
		case *metav1.Status:
			return fmt.Errorf("cannot watch the pods of the Database: %w", kerrors.FromObject(o))
		}
	}
	return ctx.Err()
}
