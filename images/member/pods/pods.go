// SPDX-License-Identifier: Apache-2.0

// Package pods writes what a member reports of itself to pods: its role as a label, and reports as annotations.
package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/volume"
)

// AnnotationVolume is what a member's volume holds, as the JSON of a volume.Content. A member writes it only while there is no
// record of a leader of the Database.
const AnnotationVolume = "capstan.dev/member-volume"

// A Client for the pods of one Database.
type Client struct {
	rest, stream             rest.Interface
	namespace, pod, database string
}

// New Client for a member's pod.
func New(k kube.Client, namespace, pod, database string) *Client {
	return &Client{k.REST, k.Stream, namespace, pod, database}
}

// Annotate the member's pod with the JSON of a value; nil removes the annotation.
func (c *Client) Annotate(ctx context.Context, name string, value any) error {
	var text any
	if value != nil {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("cannot write annotation %s: %w", name, err)
		}
		text = string(raw)
	}
	if err := c.patch(ctx, c.pod, "annotations", name, text, ""); err != nil {
		return fmt.Errorf("cannot write annotation %s: %w", name, err)
	}
	return nil
}

// ClearVolume removes what the member's pod reports of its volume, if it reports anything.
func (c *Client) ClearVolume(ctx context.Context) error {
	p, err := c.get(ctx)
	if err != nil {
		return err
	}
	if _, ok := p.Annotations[AnnotationVolume]; !ok {
		return nil
	}
	return c.Annotate(ctx, AnnotationVolume, nil)
}

// Report returns what the member's pod reports of the member.
func (c *Client) Report(ctx context.Context) (members.Report, error) {
	p, err := c.get(ctx)
	if err != nil {
		return members.Report{}, err
	}
	var r members.Report
	// One that cannot be understood is written again.
	_ = json.Unmarshal([]byte(p.Annotations[members.AnnotationReport]), &r)
	return r, nil
}

// A Pod of the Database.
type Pod struct {
	Name, Member string
	// IP is its address, and Role the value of its label.
	IP, Role string
	// Stopping pods have been deleted.
	Stopping bool
	// Started pods run, or did.
	Started bool
	// Reason that the member reports, if any, and whether its Patroni copies the data of another one.
	Reason string
	Copied bool
	// Streams reports whether it gets what the leader writes, as its Patroni says.
	Streams bool
	// Volume is what its volume holds, when it reported that.
	Volume *volume.Content
	// Fenced is what it reports of the fence that stopped it, when one did.
	Fenced *members.FenceReport
	// Upgrade is how far it says that an upgrade is, when it does one.
	Upgrade *members.UpgradeReport
	// Decides reports whether it takes part in the decision about a fence, and Yields whether also for a generation with other data.
	Decides, Yields bool
}

// List the pods of the Database.
func (c *Client) List(ctx context.Context) ([]Pod, error) {
	list, err := c.list(ctx, labels.Set{members.LabelDatabase: c.database})
	if err != nil {
		return nil, err
	}
	var out []Pod
	for _, p := range list {
		member := p.Labels[members.LabelMember]
		if member == "" {
			continue // a pod that is no member, such as a Job's
		}
		one := Pod{
			Name: p.Name, Member: member, IP: p.Status.PodIP, Role: p.Labels[members.LabelRole],
			Stopping: p.DeletionTimestamp != nil, Started: p.Status.Phase == corev1.PodRunning,
			Decides: p.Annotations[members.AnnotationDecides] == "true", Yields: p.Annotations[members.AnnotationYields] == "true",
		}
		err := errors.Join(decode(p, members.AnnotationFenced, &one.Fenced), decode(p, members.AnnotationUpgrade, &one.Upgrade),
			decode(p, AnnotationVolume, &one.Volume))
		if err != nil {
			return nil, err
		}
		one.Reason, one.Copied, one.Streams = stated(p)
		out = append(out, one)
	}
	return out, nil
}

// stated by a pod: the reason of its report, whether it is a copy that is being made, and whether it streams. What cannot be understood says
// nothing.
func stated(p corev1.Pod) (reason string, copied, streams bool) {
	var r members.Report
	var s struct {
		State       string `json:"state"`
		Replication string `json:"replication_state"`
	}
	_ = json.Unmarshal([]byte(p.Annotations[members.AnnotationReport]), &r)
	_ = json.Unmarshal([]byte(p.Annotations["status"]), &s)
	return r.Reason, s.State == "creating replica", s.Replication == "streaming"
}

// decode the JSON of an annotation, if the pod has it.
func decode[T any](p corev1.Pod, name string, into **T) error {
	raw, ok := p.Annotations[name]
	if !ok {
		return nil
	}
	*into = new(T)
	if err := json.Unmarshal([]byte(raw), *into); err != nil {
		return fmt.Errorf("cannot understand annotation %s of pod %q: %w", name, p.Name, err)
	}
	return nil
}

// Poolers returns the addresses of the pods with a label, those that stop among them: they have clients for a while.
func (c *Client) Poolers(ctx context.Context, label string) ([]string, error) {
	// All generations of a Database have the same poolers.
	database, _, _ := strings.Cut(c.database, ".")
	list, err := c.list(ctx, labels.Set{label: database})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range list {
		if p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" {
			out = append(out, p.Status.PodIP)
		}
	}
	return out, nil
}

// list the pods with some labels.
func (c *Client) list(ctx context.Context, selector labels.Set) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.rest.Get().Namespace(c.namespace).Resource("pods").Param("labelSelector", selector.String()).Do(ctx).Into(&list); err != nil {
		return nil, fmt.Errorf("cannot list the pods of the Database: %w", err)
	}
	return list.Items, nil
}

// Own pod among the pods of the Database; the zero value when it is not there.
func (c *Client) Own(list []Pod) Pod {
	for _, p := range list {
		if p.Name == c.pod {
			return p
		}
	}
	return Pod{}
}

// Copying is another member that is copied from the leader now, "" when there is none. One at a time is: until it is done there is one copy
// of the data less.
func Copying(list []Pod, own string) string {
	for _, p := range list {
		if p.Name != own && p.Copied && p.Started && !p.Stopping {
			return p.Member
		}
	}
	return ""
}

// get the member's own pod.
func (c *Client) get(ctx context.Context) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	if err := c.rest.Get().Namespace(c.namespace).Resource("pods").Name(c.pod).Do(ctx).Into(p); err != nil {
		return nil, fmt.Errorf("cannot read the pod of this member: %w", err)
	}
	return p, nil
}

// patch one label or annotation of a pod. With a version, only if the pod still has it.
func (c *Client) patch(ctx context.Context, pod, where, key string, value any, version string) error {
	metadata := map[string]any{where: map[string]any{key: value}}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("cannot patch: %w", err)
	}
	return c.rest.Patch(types.MergePatchType).Namespace(c.namespace).Resource("pods").Name(pod).Body(body).Do(ctx).Error()
}

// Stopping are the names of the pods that were deleted.
func Stopping(list []Pod) []string {
	var out []string
	for _, p := range list {
		if p.Stopping {
			out = append(out, p.Name)
		}
	}
	return out
}
