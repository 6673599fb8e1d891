// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"encoding/json"
	"fmt"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capstan-dev/capstan/apis/members"
)

// SetRole writes the role of this member, and reports whether anything had to be written. The leader takes the label from all
// others. One that was cut off cannot remove its own label, and a Service would send half of the clients to it.
//
// The context has to end soon after the role was found out: a process that was frozen in between must not continue with an
// outdated role.
func (c *Client) SetRole(ctx context.Context, role string) (bool, error) {
	if role == members.RoleLeader {
		return c.lead(ctx)
	}
	p, err := c.get(ctx)
	if err != nil {
		return false, err
	}
	if p.Labels[members.LabelRole] == role {
		return false, nil
	}
	return true, c.label(ctx, c.pod, role)
}

// lead takes the label from others and gives it to this member. A pod that may still take writes loses the label first. A pod
// whose own status says that it handed over keeps the label until this member has it.
//
// Otherwise a Service would have no pod for a moment: no server would answer the next try of its clients, which then takes a
// second. Proxies would learn of the new leader up to a second later, because they had just learned that there was none.
func (c *Client) lead(ctx context.Context) (wrote bool, err error) {
	leaders, err := c.list(ctx, labels.Set{members.LabelDatabase: c.database, members.LabelRole: members.RoleLeader})
	if err != nil {
		return false, err
	}
	own := false
	var first, last []string
	for _, p := range leaders {
		switch {
		case p.Name == c.pod:
			own = true
		case HandedOver(p.Annotations["status"]):
			last = append(last, p.Name)
		default:
			first = append(first, p.Name)
		}
	}
	if err := c.unlabel(ctx, first); err != nil {
		return true, err
	}
	if !own {
		if err := c.label(ctx, c.pod, members.RoleLeader); err != nil {
			return true, err
		}
	}
	return !own || len(first)+len(last) > 0, c.unlabel(ctx, last)
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

// unlabel pods that lead no more. Those that are gone need nothing.
func (c *Client) unlabel(ctx context.Context, pods []string) error {
	for _, p := range pods {
		if err := c.label(ctx, p, ""); err != nil && !kerrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// label a pod with a role, or with none.
func (c *Client) label(ctx context.Context, pod, role string) error {
	var value any
	if role != "" {
		value = role
	}
	if err := c.patch(ctx, pod, "labels", members.LabelRole, value); err != nil {
		return fmt.Errorf("cannot label pod %q with the role %q: %w", pod, role, err)
	}
	return nil
}
