// SPDX-License-Identifier: Apache-2.0

// Package pods writes what a member tells of itself to pods: its role as a label, and reports as annotations.
package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// AnnotationVolume is what a member's volume holds, as the JSON of a volume.Content. A member writes it only while nobody is known
// to have led the Database.
const AnnotationVolume = "capstan.dev/member-volume"

// labelScope is Patroni's label of the pods of one scope.
const labelScope = "cluster-name"

// Timeout of one request.
const Timeout = 5 * time.Second

// A Client for the pods of one Database.
type Client struct {
	rest rest.Interface
	// stream is for answers that do not end.
	stream                   rest.Interface
	namespace, pod, database string
}

// New Client for a member's pod, with the account of the pod. The clients that know all kinds of Kubernetes would make the program
// three times its size.
func New(cfg *rest.Config, namespace, pod, database string) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/api", &corev1.SchemeGroupVersion
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.Timeout, cfg.QPS = Timeout, -1 // a member asks seldom, and what it asks then must not wait
	cfg.UserAgent = "capstan-member"
	c, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	cfg.Timeout = 0
	stream, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	return &Client{c, stream, namespace, pod, database}, nil
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
	if err := c.patch(ctx, c.pod, "annotations", name, text); err != nil {
		return fmt.Errorf("cannot write annotation %s: %w", name, err)
	}
	return nil
}

// ClearVolume removes what the member's pod tells of its volume, if it tells anything.
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

// Report returns what the member's pod tells of it.
func (c *Client) Report(ctx context.Context) (members.Report, error) {
	p, err := c.get(ctx)
	if err != nil {
		return members.Report{}, err
	}
	var r members.Report
	// One that cannot be understood is written anew.
	_ = json.Unmarshal([]byte(p.Annotations[members.AnnotationReport]), &r)
	return r, nil
}

// A Pod of the Database.
type Pod struct {
	Name, Member string
	// Scope that its Patroni keeps its objects under, IP its address, and Role the value of its label.
	Scope, IP, Role string
	// Stopping pods have been deleted.
	Stopping bool
	// Started pods run, or did.
	Started bool
	// Volume is what its volume holds, when it told.
	Volume *volume.Content
	// Fenced is what it tells of the fence that stopped it, when one did.
	Fenced *members.FenceReport
	// Upgrade is how far it says that an upgrade is, when it does one.
	Upgrade *members.UpgradeReport
}

// List the pods of the Database.
func (c *Client) List(ctx context.Context) ([]Pod, error) {
	var list corev1.PodList
	selector := labels.Set{members.LabelDatabase: c.database}.String()
	if err := c.rest.Get().Namespace(c.namespace).Resource("pods").Param("labelSelector", selector).Do(ctx).Into(&list); err != nil {
		return nil, fmt.Errorf("cannot list the pods of the Database: %w", err)
	}
	var out []Pod
	for _, p := range list.Items {
		member := p.Labels[members.LabelMember]
		if member == "" {
			continue // a pod that is no member, such as a Job's
		}
		one := Pod{
			Name: p.Name, Member: member, Scope: p.Labels[labelScope], IP: p.Status.PodIP, Role: p.Labels[members.LabelRole],
			Stopping: p.DeletionTimestamp != nil, Started: p.Status.Phase == corev1.PodRunning,
		}
		if raw, ok := p.Annotations[members.AnnotationFenced]; ok {
			var f members.FenceReport
			if err := json.Unmarshal([]byte(raw), &f); err != nil {
				return nil, fmt.Errorf("cannot understand what pod %q tells of its fence: %w", p.Name, err)
			}
			one.Fenced = &f
		}
		if raw, ok := p.Annotations[members.AnnotationUpgrade]; ok {
			var u members.UpgradeReport
			if err := json.Unmarshal([]byte(raw), &u); err != nil {
				return nil, fmt.Errorf("cannot understand what pod %q tells of its upgrade: %w", p.Name, err)
			}
			one.Upgrade = &u
		}
		if raw, ok := p.Annotations[AnnotationVolume]; ok {
			var v volume.Content
			if err := json.Unmarshal([]byte(raw), &v); err != nil {
				return nil, fmt.Errorf("cannot understand what pod %q tells of its volume: %w", p.Name, err)
			}
			one.Volume = &v
		}
		out = append(out, one)
	}
	return out, nil
}

// Poolers returns the addresses of the pods with a label, those that stop among them: they have clients for a while.
func (c *Client) Poolers(ctx context.Context, label string) ([]string, error) {
	var list corev1.PodList
	// All generations of a Database have the same poolers.
	database, _, _ := strings.Cut(c.database, ".")
	selector := labels.Set{label: database}.String()
	if err := c.rest.Get().Namespace(c.namespace).Resource("pods").Param("labelSelector", selector).Do(ctx).Into(&list); err != nil {
		return nil, fmt.Errorf("cannot list the poolers of the Database: %w", err)
	}
	var out []string
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" {
			out = append(out, p.Status.PodIP)
		}
	}
	return out, nil
}

// Fence returns the identifier of the fence of a scope, as Patroni's configuration has it; nothing when there is none.
func (c *Client) Fence(ctx context.Context, scope string) (string, error) {
	config, err := c.config(ctx, scope)
	if err != nil {
		return "", fmt.Errorf("cannot find out whether the members of %s are fenced: %w", scope, err)
	}
	if !config.Pause {
		return "", nil // without it others would be promoted
	}
	return config.Fence, nil
}

// config is what members need of the configuration that Patroni keeps of a scope. All is zero when there is none yet.
type config struct {
	Fence        string `json:"capstan_fence"`
	Pause        bool   `json:"pause"`
	LoopWait     int    `json:"loop_wait"`
	RetryTimeout int    `json:"retry_timeout"`
}

// config of a scope.
func (c *Client) config(ctx context.Context, scope string) (config, error) {
	var cm corev1.ConfigMap
	err := c.rest.Get().Namespace(c.namespace).Resource("configmaps").Name(scope + "-config").Do(ctx).Into(&cm)
	if kerrors.IsNotFound(err) {
		return config{}, nil
	}
	if err != nil {
		return config{}, err //nolint:wrapcheck // It names the object.
	}
	var out config
	if raw := cm.Annotations["config"]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &out); err != nil {
			return config{}, fmt.Errorf("cannot understand the configuration of Patroni: %w", err)
		}
	}
	return out, nil
}

// Holder returns the pod that has the leader's lock of a scope, or had it last.
func (c *Client) Holder(ctx context.Context, scope string) (string, error) {
	var cm corev1.ConfigMap
	if err := c.rest.Get().Namespace(c.namespace).Resource("configmaps").Name(scope + "-leader").Do(ctx).Into(&cm); err != nil {
		return "", fmt.Errorf("cannot find out who leads %s: %w", scope, err)
	}
	return cm.Annotations[annotationHolder], nil
}

// System returns the system identifier of the data that the Database began with, as Patroni keeps it. It is empty while nobody is
// known to have led the Database.
func (c *Client) System(ctx context.Context, scope string) (string, error) {
	var cm corev1.ConfigMap
	err := c.rest.Get().Namespace(c.namespace).Resource("configmaps").Name(scope + "-config").Do(ctx).Into(&cm)
	if kerrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot find out whether the Database began: %w", err)
	}
	return cm.Annotations["initialize"], nil
}

// get the member's own pod.
func (c *Client) get(ctx context.Context) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	if err := c.rest.Get().Namespace(c.namespace).Resource("pods").Name(c.pod).Do(ctx).Into(p); err != nil {
		return nil, fmt.Errorf("cannot read the pod of this member: %w", err)
	}
	return p, nil
}

// patch one label or annotation of a pod.
func (c *Client) patch(ctx context.Context, pod, where, key string, value any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{where: map[string]any{key: value}}})
	if err != nil {
		return fmt.Errorf("cannot patch: %w", err)
	}
	return c.rest.Patch(types.MergePatchType).Namespace(c.namespace).Resource("pods").Name(pod).Body(body).Do(ctx).Error()
}
