// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/console/internal/draft"
	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/view"
)

type namespacesPage struct {
	frame

	Names []string
}

func (s *Server) namespaces(c *call) error {
	if to := c.r.URL.Query().Get("namespace"); to != "" {
		if len(validation.IsDNS1123Label(to)) > 0 {
			return errNotFound
		}

		return c.redirect("/n/" + url.PathEscape(to))
	}
	names, err := c.client.Namespaces(c.r.Context())
	if kube.Ended(err) {
		return err //nolint:wrapcheck // It is for people already.
	}
	page := namespacesPage{frame: s.frame(c, "Namespaces"), Names: names}
	// Most users may not list namespaces, and type the name of theirs.
	if err != nil && !apierrors.IsForbidden(err) {
		page.Problem = problemOf(err)
	}

	return s.render(c, http.StatusOK, "namespaces", page)
}

type listPage struct {
	frame

	Tables []table
}

type table struct {
	Kind    kube.Kind
	Rows    []view.Row
	Problem *kube.Problem
}

// tables of all kinds of a namespace, each with what the user may see of it.
func (s *Server) tables(ctx context.Context, c *call) (listPage, error) {
	page := listPage{frame: s.frame(c, "Namespace "+c.namespace), Tables: make([]table, len(kube.Kinds))}
	errs := make([]error, len(kube.Kinds))
	var group sync.WaitGroup
	for i, k := range kube.Kinds {
		group.Go(func() {
			t := table{Kind: k}
			items, err := c.client.List(ctx, k.GroupVersionResource, c.namespace)
			if err != nil {
				errs[i], t.Problem = err, problemOf(err)
			}
			for j := range items {
				t.Rows = append(t.Rows, view.Of(&items[j], s.Now()))
			}
			page.Tables[i] = t
		})
	}
	group.Wait()
	for _, err := range errs {
		if kube.Ended(err) {
			return page, err
		}
	}

	return page, nil
}

func (s *Server) list(c *call) error {
	page, err := s.tables(c.r.Context(), c)
	if err != nil {
		return err
	}

	return s.render(c, http.StatusOK, "list", page)
}

type objectPage struct {
	frame

	Kind          kube.Kind
	Name, Did     string
	Detail        view.Detail
	Events        []view.Event
	EventsProblem *kube.Problem
	Acts          []Act
	Composed      []view.Composed
	YAML          string
	// Measured objects have Curves, unless they come after the page.
	Measured bool
	Curves   *drawing
}

// did are the results that a page can report, by the word in its address.
var did = map[string]string{
	"created": "It is created. What happens now is shown below.",
	"edited":  "The change is applied. What happens now is shown below.",
	"act":     "It is requested. What happens now is shown below.",
}

// detail of an object with its events.
func (s *Server) detail(ctx context.Context, c *call) (objectPage, *unstructured.Unstructured, error) {
	page := objectPage{frame: s.frame(c, c.kind.Name+" "+c.name), Kind: c.kind, Name: c.name}
	u, err := c.client.Get(ctx, c.kind.GroupVersionResource, c.namespace, c.name)
	if err != nil {
		return page, nil, err //nolint:wrapcheck // It is for people already.
	}
	page.Detail = view.DetailOf(u, s.Now())
	events, err := c.client.Events(ctx, u)
	switch {
	case kube.Ended(err):
		return page, nil, err //nolint:wrapcheck // It is for people already.
	case err != nil:
		page.EventsProblem = problemOf(err)
	}
	page.Events = view.Events(events, kube.Last, s.Now())

	return page, u, nil
}

func (s *Server) object(c *call) error {
	ctx := c.r.Context()
	page, u, err := s.detail(ctx, c)
	if err != nil {
		return err
	}
	page.Did = did[c.r.URL.Query().Get("did")]
	switch c.r.URL.Query().Get("did") {
	case "created":
		page.Done = "/n/" + c.namespace + "/" + c.kind.Resource + "/new"
	case "edited":
		page.Done = "/n/" + c.namespace + "/" + c.kind.Resource + "/o/" + c.name + "/edit"
	}
	page.Acts = possible(u, c.now)
	page.YAML = draft.Text(draft.Clean(u))
	page.Composed = s.composed(ctx, c, u)
	if page.Measured = s.measured(c, u); page.Measured && c.r.URL.Query().Get("curves") != "" {
		if page.Curves, err = s.draw(c); err != nil {
			return err
		}
	}

	return s.render(c, http.StatusOK, "object", page)
}

// atOnce is how many composed objects are read at the same time.
const atOnce = 8

// mostRead of them. An editor of an object decides what it refers to, and another user's page reads it.
const mostRead = 300

// composed objects and their state, as far as the user may read them.
func (s *Server) composed(ctx context.Context, c *call, u *unstructured.Unstructured) []view.Composed {
	all := view.References(u)
	free := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i := range all {
		resource := kube.ResourceOf(all[i].APIVersion, all[i].Kind)
		if i >= mostRead || resource.Empty() {
			all[i].State, all[i].Tone = "not read", view.Neutral

			continue
		}
		group.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			one := &all[i]
			got, err := c.client.Get(ctx, resource, c.namespace, one.Name)
			switch {
			case err == nil:
				one.State, one.Tone = view.StateOf(got)
			case apierrors.IsForbidden(err):
				one.State, one.Tone = "you may not read it", view.Neutral
			case apierrors.IsNotFound(err):
				one.State, one.Tone = "not there yet", view.Busy
			case errors.Is(err, context.Canceled):
			default:
				one.State, one.Tone = "cannot be read now", view.Neutral
			}
		})
	}
	group.Wait()

	return all
}
