// SPDX-License-Identifier: Apache-2.0

// Package bundle collects what support needs to help with an Algorithm or a Database, without credentials: it never reads a Secret, and
// omits what looks like a credential in other objects.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// lines of each log at most, the latest.
const lines = "5000"

// A Bundle is a set of files by their paths.
type Bundle struct {
	c     *cluster.Cluster
	files map[string]string
	plain map[string]string // resources by "version/kind"
	notes []string
}

// Collect what belongs to an object of the namespace, whose pods are given.
func Collect(ctx context.Context, c *cluster.Cluster, resource schema.GroupVersionResource, name string, pods []corev1.Pod) (*Bundle, error) {
	b := &Bundle{c: c, files: map[string]string{}, plain: map[string]string{}}
	xr, err := c.Dynamic.Resource(resource).Namespace(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %s/%s: %w", resource.Resource, c.Namespace, name, err)
	}
	concerned := map[string]bool{name: true}
	refs, _, _ := unstructured.NestedSlice(xr.Object, "spec", "crossplane", "resourceRefs")
	b.object("xr.yaml", xr)
	for _, ref := range refs {
		r, ok := ref.(map[string]any)
		if !ok {
			continue
		}
		version, _ := r["apiVersion"].(string)
		kind, _ := r["kind"].(string)
		called, _ := r["name"].(string)
		concerned[called] = true
		b.composed(ctx, version, kind, called)
	}
	for i := range pods {
		concerned[pods[i].Name] = true
		b.pod(ctx, pods[i])
	}
	b.events(ctx, concerned)

	return b, nil
}

// Add a file.
func (b *Bundle) Add(path, content string) { b.files[path] = Text(content) }

func (b *Bundle) notef(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

func (b *Bundle) object(path string, u *unstructured.Unstructured) {
	data, err := yaml.Marshal(Object(u.Object))
	if err != nil {
		b.notef("cannot encode %s: %v", path, err)

		return
	}
	b.files[path] = string(data)
}

// composed object, unless it is a Secret.
func (b *Bundle) composed(ctx context.Context, version, kind, name string) {
	if kind == "Secret" {
		b.notef("Secret %s is left out, as all Secrets are", name)

		return
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		b.notef("cannot read %s %s: %v", kind, name, err)

		return
	}
	plural, err := b.plural(ctx, gv, kind)
	if err != nil {
		b.notef("cannot read %s %s: %v", kind, name, err)

		return
	}
	u, err := b.c.Dynamic.Resource(gv.WithResource(plural)).Namespace(b.c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		b.notef("cannot read %s %s: %v", kind, name, err)

		return
	}
	b.object(fmt.Sprintf("composed/%s-%s.yaml", strings.ToLower(kind), name), u)
}

// plural of a kind, which the API server knows.
func (b *Bundle) plural(ctx context.Context, gv schema.GroupVersion, kind string) (string, error) {
	if p := b.plain[gv.String()+"/"+kind]; p != "" {
		return p, nil
	}
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	body, err := b.c.Raw(ctx, path, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	var list metav1.APIResourceList
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return "", fmt.Errorf("cannot read the kinds of %s: %w", gv, err)
	}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			b.plain[gv.String()+"/"+r.Kind] = r.Name
		}
	}
	if p := b.plain[gv.String()+"/"+kind]; p != "" {
		return p, nil
	}

	return "", fmt.Errorf("the cluster has no kind %s in %s", kind, gv)
}

// pod with the logs of its containers, also from before they restarted.
func (b *Bundle) pod(ctx context.Context, p corev1.Pod) {
	u, err := b.c.Dynamic.Resource(cluster.Pods).Namespace(b.c.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil {
		b.notef("cannot read pod %s: %v", p.Name, err)

		return
	}
	b.object(fmt.Sprintf("pods/%s.yaml", p.Name), u)
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		b.log(ctx, p.Name, s.Name, fmt.Sprintf("pods/%s/%s.log", p.Name, s.Name), url.Values{})
		if s.RestartCount > 0 {
			b.log(ctx, p.Name, s.Name, fmt.Sprintf("pods/%s/%s.previous.log", p.Name, s.Name), url.Values{"previous": {"true"}})
		}
	}
}

func (b *Bundle) log(ctx context.Context, pod, container, path string, query url.Values) {
	query.Set("tailLines", lines)
	r, err := b.c.Logs(ctx, pod, container, query)
	if err != nil {
		b.notef("cannot read the log of %s in pod %s: %v", container, pod, err)

		return
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		b.notef("cannot read all of the log of %s in pod %s: %v", container, pod, err)
	}
	b.Add(path, string(data))
}

// events of the objects that are concerned, in the order of time.
func (b *Bundle) events(ctx context.Context, concerned map[string]bool) {
	all, err := cluster.List[corev1.Event](ctx, b.c, cluster.Events, "")
	if err != nil {
		b.notef("%v", err)

		return
	}
	slices.SortStableFunc(all, func(x, y corev1.Event) int { return when(x).Compare(when(y)) })
	var text strings.Builder
	for _, e := range all {
		if concerned[e.InvolvedObject.Name] {
			fmt.Fprintf(&text, "%s  %-7s  %s/%s  %s  x%d  %s\n", when(e).UTC().Format(time.RFC3339), e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, max(e.Count, 1), e.Message)
		}
	}
	b.Add("events.txt", text.String())
}

func when(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	default:
		return e.EventTime.Time
	}
}

// Write the files as a compressed archive, below a folder.
func (b *Bundle) Write(out io.Writer, folder string, now time.Time) error {
	if len(b.notes) > 0 {
		b.Add("left-out.txt", strings.Join(b.notes, "\n")+"\n")
	}
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(b.files)) {
		content := b.files[path]
		header := &tar.Header{Name: folder + "/" + path, Mode: 0o600, Size: int64(len(content)), ModTime: now}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("cannot write %s: %w", path, err)
		}
		if _, err := io.WriteString(archive, content); err != nil {
			return fmt.Errorf("cannot write %s: %w", path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}

	return nil
}

// Paths of the files, sorted.
func (b *Bundle) Paths() []string { return slices.Sorted(maps.Keys(b.files)) }
