// SPDX-License-Identifier: Apache-2.0

// Package record reads and writes what members know of each other in ConfigMaps: the leader, which members were in the last group with a
// majority, and who began it. It outlives the group.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

// Annotations of <scope>-leader, beside the ones in package members.
const (
	// annotationView is the last group that had a majority, as the JSON of Seats.
	annotationView = "capstan.dev/view"
	// annotationBegin is the last claim to begin a group, as the JSON of a Claim.
	annotationBegin = "capstan.dev/begin"
)

// A Client of the ConfigMaps of one scope.
type Client struct {
	kube                       kube.Client
	namespace, database, scope string
}

// New Client of a scope.
func New(k kube.Client, namespace, database, scope string) *Client {
	return &Client{k, namespace, database, scope}
}

// A Seat of a member in the group.
type Seat struct {
	// Name of the member, and Server, the id of its data.
	Name   string `json:"name"`
	Server string `json:"server"`
	// Joining is since when it is about to join, if the group has not had it yet.
	Joining *time.Time `json:"joining,omitempty"`
	// Leader reports that it is the leader, or was the last one: this stays when its pod is not the leader any more, as in an outage of all
	// members. A member of an earlier version does not say so.
	Leader bool `json:"leader,omitempty"`
}

// A Claim to begin a group.
type Claim struct {
	// Epoch counts the claims.
	Epoch int64 `json:"epoch"`
	// Member that begins, and what it has.
	Member string `json:"member"`
	Has    string `json:"has"`
	// Group is the name of the group. Default: the first one of the generation.
	Group string `json:"group,omitempty"`
}

// A Record of the group as it was read. Only one that is still as it was read can be changed.
type Record struct {
	// Leader is the name of its pod, and Transitions how often another one became it.
	Leader      string
	Transitions int64
	View        []Seat
	Begin       Claim

	version string
}

// Seats of the view for a decision.
func (r Record) Seats() []decision.Seat {
	out := make([]decision.Seat, 0, len(r.View))
	for _, s := range r.View {
		out = append(out, decision.Seat{Name: s.Name, Server: s.Server})
	}
	return out
}

// LastLeader is the name of the member that was the last leader; "" when none is known. When the pod of that one comes back after an outage, it
// removes itself as the Leader first of all.
func (r Record) LastLeader() string {
	for _, s := range r.View {
		if s.Leader {
			return s.Name
		}
	}
	return layout.Member(r.Leader)
}

// Read the record. It is zero when there is none yet.
func (c *Client) Read(ctx context.Context) (Record, error) {
	cm, err := c.get(ctx, members.SuffixLeader)
	if err != nil {
		return Record{}, fmt.Errorf("cannot read the record of the group: %w", err)
	}
	a := cm.Annotations
	r := Record{Leader: a[members.AnnotationLeader], version: cm.ResourceVersion}
	if n := a[members.AnnotationTransitions]; n != "" {
		r.Transitions, err = strconv.ParseInt(n, 10, 64)
	}
	if err = errors.Join(err, decode(a[annotationView], &r.View), decode(a[annotationBegin], &r.Begin)); err != nil {
		return Record{}, fmt.Errorf("cannot understand the record of the group: %w", err)
	}
	return r, nil
}

func decode(text string, into any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}

// Lead records the pod of the leader, and the members of its group.
func (c *Client) Lead(ctx context.Context, before Record, pod string, view []Seat, now time.Time) (transitions int64, err error) {
	changes := map[string]any{annotationView: encode(view)}
	transitions = before.Transitions
	if before.Leader != pod {
		transitions++
		changes[members.AnnotationLeader] = pod
		changes[members.AnnotationAcquired] = now.UTC().Format(time.RFC3339)
		changes[members.AnnotationTransitions] = strconv.FormatInt(transitions, 10)
	}
	return transitions, c.change(ctx, before, changes)
}

// Unlead records that there is no leader.
func (c *Client) Unlead(ctx context.Context, before Record) error {
	return c.change(ctx, before, map[string]any{members.AnnotationLeader: ""})
}

// Sit records the members of the group, with one that is about to join.
func (c *Client) Sit(ctx context.Context, before Record, view []Seat) error {
	return c.change(ctx, before, map[string]any{annotationView: encode(view)})
}

// Begin claims to begin a group of a name with one member. Of all that claim after the same reading, one succeeds.
func (c *Client) Begin(ctx context.Context, before Record, own Seat, has, group string) error {
	claim := Claim{Epoch: before.Begin.Epoch + 1, Member: own.Name, Has: has, Group: group}
	return c.change(ctx, before, map[string]any{annotationBegin: encode(claim), annotationView: encode([]Seat{own})})
}

// encode seats or a claim.
func encode[T []Seat | Claim](value T) string {
	raw, _ := json.Marshal(value) //nolint:errchkjson // Texts and numbers can always be written.
	return string(raw)
}

// change annotations of the record, unless it was changed since it was read.
func (c *Client) change(ctx context.Context, before Record, changes map[string]any) error {
	var err error
	if before.version == "" {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: c.name(members.SuffixLeader), Labels: map[string]string{members.LabelDatabase: c.database, members.LabelScope: c.scope},
			Annotations: map[string]string{},
		}}
		for name, value := range changes {
			cm.Annotations[name], _ = value.(string)
		}
		err = c.kube.REST.Post().Namespace(c.namespace).Resource("configmaps").Body(cm).Do(ctx).Error()
	} else {
		err = c.patch(ctx, members.SuffixLeader, before.version, changes)
	}
	if err != nil {
		return fmt.Errorf("cannot change the record of the group: %w", err)
	}
	return nil
}

// Conflict reports whether an error says that the record was changed by another one.
func Conflict(err error) bool { return kerrors.IsConflict(err) || kerrors.IsAlreadyExists(err) }

// Common is what all members follow.
type Common struct {
	// Initialized identifies the data, once there is any.
	Initialized string
	// Dynamic is the text of a mysqlmember.Dynamic, and Accepted the member that a person decided to begin with.
	Dynamic, Accepted string
}

// Common reads what all members follow.
func (c *Client) Common(ctx context.Context) (Common, error) {
	cm, err := c.get(ctx, members.SuffixConfig)
	if err != nil {
		return Common{}, fmt.Errorf("cannot read what members follow: %w", err)
	}
	a := cm.Annotations
	return Common{a[members.AnnotationInitialize], a[members.AnnotationConfig], a[decision.AnnotationBeginFrom]}, nil
}

// Undecide removes a decision to begin with a member, because there is a group.
func (c *Client) Undecide(ctx context.Context) error {
	if err := c.patch(ctx, members.SuffixConfig, "", map[string]any{decision.AnnotationBeginFrom: nil}); err != nil {
		return fmt.Errorf("cannot remove a decision that came too late: %w", err)
	}
	return nil
}

// Initialize records that there is data, and that a decision to begin was carried out.
func (c *Client) Initialize(ctx context.Context, group string) error {
	if err := c.patch(ctx, members.SuffixConfig, "", map[string]any{members.AnnotationInitialize: group, decision.AnnotationBeginFrom: nil}); err != nil {
		return fmt.Errorf("cannot record that there is data: %w", err)
	}
	return nil
}

// A Request for another leader.
type Request struct{ From, To string }

// Requested returns the request for another leader, if there is one.
func (c *Client) Requested(ctx context.Context) (Request, error) {
	cm, err := c.get(ctx, members.SuffixFailover)
	if err != nil {
		return Request{}, fmt.Errorf("cannot read who should lead: %w", err)
	}
	return Request{cm.Annotations[members.AnnotationLeader], cm.Annotations[members.AnnotationCandidate]}, nil
}

// EndRequest removes a request, once it was tried.
func (c *Client) EndRequest(ctx context.Context) error {
	if err := c.patch(ctx, members.SuffixFailover, "", map[string]any{members.AnnotationLeader: nil, members.AnnotationCandidate: nil}); err != nil {
		return fmt.Errorf("cannot remove the request for another leader: %w", err)
	}
	return nil
}

// Watch the ConfigMaps of the scope, and call a function whenever one changes, until the stream or the context ends.
func (c *Client) Watch(ctx context.Context, changed func(name string)) error {
	stream, err := c.kube.Stream.Get().Namespace(c.namespace).Resource("configmaps").
		Param("labelSelector", labels.Set{members.LabelScope: c.scope}.String()).Param("watch", "true").Watch(ctx)
	if err != nil {
		return fmt.Errorf("cannot watch what members follow: %w", err)
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		switch o := e.Object.(type) {
		case *corev1.ConfigMap:
			changed(o.Name)
		case *metav1.Status:
			return fmt.Errorf("cannot watch what members follow: %w", kerrors.FromObject(o))
		}
	}
	return ctx.Err()
}

func (c *Client) name(suffix string) string { return c.scope + "-" + suffix }

// get an object of the scope. It is empty when it does not exist.
func (c *Client) get(ctx context.Context, suffix string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := c.kube.REST.Get().Namespace(c.namespace).Resource("configmaps").Name(c.name(suffix)).Do(ctx).Into(cm)
	if kerrors.IsNotFound(err) {
		return &corev1.ConfigMap{}, nil
	}
	return cm, err
}

// patch annotations of an object; nil removes one. With a version, only if the object still has it.
func (c *Client) patch(ctx context.Context, suffix, version string, annotations map[string]any) error {
	metadata := map[string]any{"annotations": annotations}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return c.kube.REST.Patch(types.MergePatchType).Namespace(c.namespace).Resource("configmaps").Name(c.name(suffix)).Body(body).Do(ctx).Error()
}
