// SPDX-License-Identifier: Apache-2.0

// Package cluster reads and patches the objects that the plugin knows, with the rights of its user.
package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// FieldManager of all edits.
const FieldManager = "kubectl-capstan"

// Resources that the plugin reads.
var (
	Algorithms  = v1alpha1.GroupVersion.WithResource("algorithms")
	Databases   = v1alpha1.GroupVersion.WithResource("databases")
	Previews    = v1alpha1.GroupVersion.WithResource("previews")
	Analyses    = observev1alpha1.GroupVersion.WithResource("analyses")
	Deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	Pods        = corev1.SchemeGroupVersion.WithResource("pods")
	Events      = corev1.SchemeGroupVersion.WithResource("events")
)

// A Cluster is read and patched in one namespace.
type Cluster struct {
	Dynamic   dynamic.Interface
	Namespace string

	// HTTP client and address of the API server, for what is no object: logs and the version.
	HTTP *http.Client
	Base *url.URL
}

// New client of a cluster.
func New(config *rest.Config, namespace string) (*Cluster, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot read the address of the cluster: %w", err)
	}

	return &Cluster{Dynamic: objects, Namespace: namespace, HTTP: client, Base: base}, nil
}

// Algorithm of a name.
func (c *Cluster) Algorithm(ctx context.Context, name string) (*v1alpha1.Algorithm, error) {
	return get[v1alpha1.Algorithm](ctx, c, Algorithms, "Algorithm", name)
}

// Database of a name.
func (c *Cluster) Database(ctx context.Context, name string) (*v1alpha1.Database, error) {
	return get[v1alpha1.Database](ctx, c, Databases, "Database", name)
}

// Preview of a name.
func (c *Cluster) Preview(ctx context.Context, name string) (*v1alpha1.Preview, error) {
	return get[v1alpha1.Preview](ctx, c, Previews, "Preview", name)
}

// Apply an object by its manifest, and return its generation. What another manager of fields set differently is a conflict: it is not
// overridden.
func (c *Cluster) Apply(ctx context.Context, resource schema.GroupVersionResource, manifest map[string]any) (int64, error) {
	u := &unstructured.Unstructured{Object: manifest}
	applied, err := c.Dynamic.Resource(resource).Namespace(c.Namespace).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: FieldManager})
	switch {
	case apierrors.IsConflict(err):
		return 0, fmt.Errorf("%s %s/%s is managed by something else, such as GitOps: change it there, or delete it first: %w", u.GetKind(), c.Namespace, u.GetName(), err)
	case apierrors.IsNotFound(err) && missing(err):
		return 0, fmt.Errorf("this cluster has no kind %s: Capstan is not installed; `kubectl capstan doctor` shows what is missing: %w", u.GetKind(), err)
	case err != nil:
		return 0, fmt.Errorf("cannot apply %s %s/%s: %w", u.GetKind(), c.Namespace, u.GetName(), err)
	}

	return applied.GetGeneration(), nil
}

// Delete an object, and report whether there was one.
func (c *Cluster) Delete(ctx context.Context, resource schema.GroupVersionResource, name string) (bool, error) {
	err := c.Dynamic.Resource(resource).Namespace(c.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) && !missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot delete %s %s/%s: %w", resource.Resource, c.Namespace, name, err)
	}

	return true, nil
}

func get[T any](ctx context.Context, c *Cluster, resource schema.GroupVersionResource, kind, name string) (*T, error) {
	u, err := c.Dynamic.Resource(resource).Namespace(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && missing(err):
		return nil, fmt.Errorf("this cluster has no kind %s: Capstan is not installed; `kubectl capstan doctor` shows what is missing: %w", kind, err)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s %s in namespace %s: `kubectl capstan status` lists those there are: %w", kind, name, c.Namespace, err)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s %s/%s: %w", kind, c.Namespace, name, err)
	}

	return typed[T](u)
}

// missing reports whether the API server does not know the kind, in contrast to the object.
func missing(err error) bool {
	return strings.Contains(err.Error(), "the server could not find the requested resource")
}

// typed form of an object.
func typed[T any](u *unstructured.Unstructured) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return nil, fmt.Errorf("cannot read %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}

	return into, nil
}

// List objects of the namespace that a selector of labels matches.
func List[T any](ctx context.Context, c *Cluster, resource schema.GroupVersionResource, selector string) ([]T, error) {
	list, err := c.Dynamic.Resource(resource).Namespace(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s of namespace %s: %w", resource.Resource, c.Namespace, err)
	}
	all := make([]T, 0, len(list.Items))
	for i := range list.Items {
		o, err := typed[T](&list.Items[i])
		if err != nil {
			return nil, err
		}
		all = append(all, *o)
	}

	return all, nil
}

// Analysis of an Algorithm, or nil when there is none to read.
func (c *Cluster) Analysis(ctx context.Context, algorithm string) (*observev1alpha1.Analysis, error) {
	a, err := get[observev1alpha1.Analysis](ctx, c, Analyses, "Analysis", algorithm)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil //nolint:nilnil // Evidence without its numbers is still worth a look.
	}

	return a, err
}

// Patch an object with a JSON merge patch.
func (c *Cluster) Patch(ctx context.Context, resource schema.GroupVersionResource, name string, patch []byte) error {
	_, err := c.Dynamic.Resource(resource).Namespace(c.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("cannot edit %s %s/%s: %w", resource.Resource, c.Namespace, name, err)
	}

	return nil
}

// Members are the pods of a Database, of all generations that run.
func (c *Cluster) Members(ctx context.Context, database string) ([]corev1.Pod, error) {
	// A later generation has the name of the Database and its number.
	pods, err := List[corev1.Pod](ctx, c, Pods, observev1alpha1.LabelMember)
	if err != nil {
		return nil, err
	}
	var of []corev1.Pod
	for _, p := range pods {
		base := p.Labels[observev1alpha1.LabelDatabase]
		if base == database || strings.HasPrefix(base, database+".g") {
			of = append(of, p)
		}
	}

	return of, nil
}

// Replicas are the pods of an Algorithm.
func (c *Cluster) Replicas(ctx context.Context, algorithm string) ([]corev1.Pod, error) {
	return List[corev1.Pod](ctx, c, Pods, observev1alpha1.LabelAlgorithm+"="+algorithm)
}

// Raw answer of the API server to a GET, which the reader closes.
func (c *Cluster) Raw(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	u := c.Base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	rsp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if rsp.StatusCode != http.StatusOK {
		defer func() { _ = rsp.Body.Close() }()
		said, _ := io.ReadAll(io.LimitReader(rsp.Body, 4096))

		return nil, fmt.Errorf("cannot read %s: %s: %s", path, rsp.Status, strings.TrimSpace(string(said)))
	}

	return rsp.Body, nil
}

// Logs of a container, each line with its time.
func (c *Cluster) Logs(ctx context.Context, pod, container string, query url.Values) (io.ReadCloser, error) {
	q := url.Values{"container": {container}, "timestamps": {"true"}}
	maps.Copy(q, query)

	return c.Raw(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log", c.Namespace, pod), q)
}
