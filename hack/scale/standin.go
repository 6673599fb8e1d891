// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/capstan-dev/capstan/hack/internal/pki"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// Kinds that a standIn watches or writes.
var (
	certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	sets         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	accesses     = schema.GroupVersionResource{Group: "access.capstan.dev", Version: "v1alpha1", Resource: "accesses"}
	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes        = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	claims       = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	configs      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// standInWorkers are how many objects a standIn works for at once.
const standInWorkers = 16

// A standIn does for Databases what nothing else does where there are no nodes. It stands for cert-manager, for the controller of
// StatefulSets and the kubelet, for the members that report to the API server, and for their server. No database runs: members report
// what healthy ones would, at once. The provider makes no logins, because there is no server for them: each Access is paused and said to be Ready.
type standIn struct {
	client    dynamic.Interface
	authority *pki.Authority
	progress  *progress.Printer
	queue     workqueue.TypedRateLimitingInterface[task]
	stores    map[schema.GroupVersionResource]cache.GenericLister

	mu sync.Mutex
	// locks that leaders renew: ConfigMaps by namespace and name.
	locks map[name]bool
}

// A task is an object that a standIn has to work for.
type task struct {
	name

	at schema.GroupVersionResource
}

func newStandIn(client dynamic.Interface, authority *pki.Authority, p *progress.Printer) *standIn {
	return &standIn{
		client: client, authority: authority, progress: p, locks: map[name]bool{}, stores: map[schema.GroupVersionResource]cache.GenericLister{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](100*time.Millisecond, 10*time.Second)),
	}
}

// start the work, which lasts until ctx ends.
func (s *standIn) start(ctx context.Context) error {
	if err := s.nodes(ctx); err != nil {
		return err
	}
	all := dynamicinformer.NewDynamicSharedInformerFactory(s.client, 0)
	members := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.client, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.LabelSelector = labelMember
	})
	for at, from := range map[schema.GroupVersionResource]dynamicinformer.DynamicSharedInformerFactory{certificates: all, sets: all, accesses: all, pods: members} {
		informer := from.ForResource(at)
		s.stores[at] = informer.Lister()
		add := func(o any) {
			if u, ok := o.(*unstructured.Unstructured); ok {
				s.queue.Add(task{name{u.GetNamespace(), u.GetName()}, at})
			}
		}
		if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }}); err != nil {
			return fmt.Errorf("cannot watch %s: %w", at.Resource, err)
		}
	}
	for _, f := range []dynamicinformer.DynamicSharedInformerFactory{all, members} {
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
	}
	context.AfterFunc(ctx, s.queue.ShutDown)
	for range standInWorkers {
		go s.work(ctx)
	}
	go s.renewAll(ctx)
	return nil
}

func (s *standIn) work(ctx context.Context) {
	for {
		t, ended := s.queue.Get()
		if ended {
			return
		}
		err := s.do(ctx, t)
		switch {
		case err == nil || apierrors.IsNotFound(err):
			s.queue.Forget(t)
		case ctx.Err() == nil:
			// Objects change meanwhile; what fails again and again is printed.
			if s.queue.NumRequeues(t) == 5 {
				s.progress.Sayf("cannot stand in for what %s %q needs: %v", t.at.Resource, t.key(), err)
			}
			s.queue.AddRateLimited(t)
		}
		s.queue.Done(t)
	}
}

func (s *standIn) do(ctx context.Context, t task) error {
	o, err := s.stores[t.at].ByNamespace(t.namespace).Get(t.name.name)
	if err != nil {
		return fmt.Errorf("cannot find it: %w", err)
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("cannot use %T", o)
	}
	switch t.at {
	case certificates:
		return s.certificate(ctx, u)
	case accesses:
		return s.access(ctx, u)
	case sets:
		return s.member(ctx, u)
	default:
		return s.end(ctx, u)
	}
}

// certificate as cert-manager issues it: the Secret, and then the condition.
func (s *standIn) certificate(ctx context.Context, c *unstructured.Unstructured) error {
	if c.GetDeletionTimestamp() != nil || isReady(c) {
		return nil
	}
	hosts, _, _ := unstructured.NestedStringSlice(c.Object, "spec", "dnsNames")
	user, _, _ := unstructured.NestedString(c.Object, "spec", "commonName")
	secret, _, _ := unstructured.NestedString(c.Object, "spec", "secretName")
	pair, err := s.authority.Issue(pki.Request{User: user, Names: hosts, Client: true})
	if err != nil {
		return fmt.Errorf("cannot issue a certificate: %w", err)
	}
	if err := s.apply(ctx, secrets, object("v1", "Secret", name{c.GetNamespace(), secret}, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"cert-manager.io/certificate-name": c.GetName()}},
		"type":     "kubernetes.io/tls",
		"stringData": map[string]any{
			"ca.crt": string(s.authority.Cert), "tls.crt": string(pair.Cert), "tls.key": string(pair.Key),
		},
	})); err != nil {
		return err
	}
	return s.report(ctx, certificates, c, map[string]any{"conditions": []any{ready("Ready", "Certificate is up to date and has not expired", c)}})
}

// access is paused, and then said to be what its spec asks for. One that is deleted is the provider's again, which removes it.
func (s *standIn) access(ctx context.Context, a *unstructured.Unstructured) error {
	const paused = "crossplane.io/paused"
	deleted, isPaused := a.GetDeletionTimestamp() != nil, a.GetAnnotations()[paused] == "true"
	if deleted == isPaused {
		var value any
		if !deleted {
			value = "true"
		}
		if err := s.annotate(ctx, accesses, name{a.GetNamespace(), a.GetName()}, map[string]any{paused: value}); err != nil {
			return err
		}
	}
	var told []any
	logins, _, _ := unstructured.NestedSlice(a.Object, "spec", "forProvider", "logins")
	for _, l := range logins {
		if m, ok := l.(map[string]any); ok {
			told = append(told, m["name"])
		}
	}
	was, _, _ := unstructured.NestedSlice(a.Object, "status", "atProvider", "logins")
	if deleted || isReady(a) && len(was) == len(told) {
		return nil
	}
	return s.report(ctx, accesses, a, map[string]any{
		"atProvider": map[string]any{"logins": told}, "conditions": []any{ready("Available", "", a)},
	})
}

// manager of the fields that a standIn writes.
const manager = "capstan-scale"

// apply an object, also where there is another one.
func (s *standIn) apply(ctx context.Context, at schema.GroupVersionResource, o *unstructured.Unstructured) error {
	if _, err := s.client.Resource(at).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		return fmt.Errorf("cannot apply %s %q: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// report a status of an object.
func (s *standIn) report(ctx context.Context, at schema.GroupVersionResource, of *unstructured.Unstructured, status map[string]any) error {
	o := object(of.GetAPIVersion(), of.GetKind(), name{of.GetNamespace(), of.GetName()}, map[string]any{"status": status})
	if _, err := s.client.Resource(at).Namespace(of.GetNamespace()).ApplyStatus(ctx, of.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		return fmt.Errorf("cannot report for %s %q: %w", of.GetKind(), of.GetName(), err)
	}
	return nil
}

// annotate an object; nil takes an annotation away.
func (s *standIn) annotate(ctx context.Context, at schema.GroupVersionResource, n name, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations: %w", err)
	}
	if _, err := s.client.Resource(at).Namespace(n.namespace).Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("cannot annotate %s %q: %w", strings.TrimSuffix(at.Resource, "s"), n.key(), err)
	}
	return nil
}

// object of a kind with other content.
func object(apiVersion, kind string, n name, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(n.namespace)
	o.SetName(n.name)
	return o
}

// ready is a condition that is true for the spec of an object. An empty message is left out.
func ready(reason, message string, of *unstructured.Unstructured) map[string]any {
	c := map[string]any{
		"type": "Ready", "status": string(metav1.ConditionTrue), "reason": reason, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": of.GetGeneration(),
	}
	if message != "" {
		c["message"] = message
	}
	return c
}

// isReady reports whether an object is Ready with its newest spec.
func isReady(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		generation, _, _ := unstructured.NestedInt64(m, "observedGeneration")
		if m["type"] == "Ready" {
			return m["status"] == string(metav1.ConditionTrue) && generation == o.GetGeneration()
		}
	}
	return false
}
