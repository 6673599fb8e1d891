// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-dev/capstan/console/internal/kube"
)

type actPage struct {
	frame

	Kind              kube.Kind
	Name              string
	Act               Act
	Words             []string
	Manager, Manifest string
	ID, Sum           string
}

// requestIDs that this console makes, and that come back to it.
var requestIDs = regexp.MustCompile(`^console-[0-9]{8}-[0-9]{6}$`)

// act shows what an act would do now, before anything is done.
func (s *Server) act(c *call) error {
	u, a, err := s.actOn(c, c.r.URL.Query().Get)
	if err != nil {
		return err
	}

	return s.showAct(c, u, a, requestID(c.now), nil)
}

func (s *Server) actOn(c *call, value func(string) string) (*unstructured.Unstructured, Act, error) {
	u, err := c.client.Get(c.r.Context(), c.kind.GroupVersionResource, c.namespace, c.name)
	if err != nil {
		return nil, Act{}, err //nolint:wrapcheck // It is for people already.
	}
	a, err := actOf(u, c.r.PathValue("act"), value, c.now)
	if err != nil {
		return nil, Act{}, errNotFound
	}

	return u, a, nil
}

// value of an input.
func (a Act) value(name string) string {
	for _, in := range a.Inputs {
		if in.Name == name {
			return in.Value
		}
	}

	return ""
}

func (s *Server) showAct(c *call, u *unstructured.Unstructured, a Act, id string, p *kube.Problem) error {
	page := actPage{frame: s.frame(c, a.Title+" "+c.name), Kind: c.kind, Name: c.name, Act: a, ID: id, Manager: manager(u)}
	page.Problem = p
	status := http.StatusOK
	if p != nil {
		status = p.Status
	}
	plan, err := a.decide(u, a.value, id, c.now)
	switch {
	case err != nil && p == nil:
		page.Problem = &kube.Problem{Title: "This cannot be done now", Detail: err.Error(), Status: http.StatusUnprocessableEntity}
		status = page.Problem.Status
	case err != nil:
	case plan.Done != "":
		page.Problem = &kube.Problem{Title: "Nothing to do", Detail: "For " + c.name + ": " + plan.Done + "."}
	default:
		page.Words, page.Sum = plan.Words, plan.sum()
		if page.Manifest, err = plan.manifest(); err != nil {
			return err
		}
	}

	return s.render(c, status, "act", page)
}

// carryOut an act that was confirmed, as long as it does what was shown.
func (s *Server) carryOut(c *call) error {
	u, a, err := s.actOn(c, c.r.PostFormValue)
	if err != nil {
		return err
	}
	id := c.r.PostFormValue("id")
	if !requestIDs.MatchString(id) {
		id = requestID(c.now)
	}
	plan, err := a.decide(u, a.value, id, c.now)
	if err != nil || plan.Done != "" {
		return s.showAct(c, u, a, id, nil)
	}
	if plan.sum() != c.r.PostFormValue("words") {
		return s.showAct(c, u, a, id, &kube.Problem{
			Title: "It has changed meanwhile", Detail: "What will happen is no longer what was shown. Read it again.", Status: http.StatusConflict,
		})
	}
	patch, err := plan.patch(u.GetResourceVersion())
	if err != nil {
		return err
	}
	if _, err := c.client.Patch(c.r.Context(), c.kind.GroupVersionResource, c.namespace, c.name, patch, false); err != nil {
		if apierrors.IsConflict(err) {
			return s.showAct(c, u, a, id, &kube.Problem{
				Title: "It was edited at the same time", Detail: "Nothing was changed. Confirm it again.", Status: http.StatusConflict,
			})
		}

		return err //nolint:wrapcheck // It is for people already.
	}

	return c.redirect("/n/" + c.namespace + "/" + c.kind.Resource + "/o/" + c.name + "?did=act")
}
