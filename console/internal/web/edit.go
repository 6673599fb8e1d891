// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-dev/capstan/console/internal/draft"
	"github.com/capstan-dev/capstan/console/internal/form"
	"github.com/capstan-dev/capstan/console/internal/kube"
)

// fieldPrefix of the names of inputs, so that no field has the name of another part of the page.
const fieldPrefix = "field."

type editPage struct {
	frame

	Kind        kube.Kind
	Name, Named string
	Fields      []form.Field
	// More opens the advanced fields, because one of them has a value.
	More bool
	// YAML of the draft, and of what its edit began with.
	YAML, Base string
	// Checked is the sum of the draft that the API server accepted.
	Checked string
	Diff    []draft.Line
	// Plan of the draft that was checked. Pages with a script get it after the page.
	Plan *foreseen
	// Theirs and Mine are the changes since Base after a conflict, and Conflicts the fields that both have.
	Theirs, Mine []draft.Line
	Conflicts    []string
	// Fresh is true of a page before a person types in it.
	Fresh bool
}

// typedFields of a form that was sent, as text.
func (c *call) typedFields() []string {
	var all []string
	for name, v := range c.r.PostForm {
		if path, ok := strings.CutPrefix(name, fieldPrefix); ok && len(v) > 0 && v[0] != "" {
			all = append(all, "# "+path+": "+strings.ReplaceAll(v[0], "\n", " "))
		}
	}
	slices.Sort(all)

	return all
}

// edit shows the form of an object, or an empty one.
func (s *Server) edit(c *call) error {
	if c.kind.Form == nil {
		return errNotFound
	}
	u := c.blank()
	base := ""
	if c.name != "" {
		got, err := c.client.Get(c.r.Context(), c.kind.GroupVersionResource, c.namespace, c.name)
		if err != nil {
			return err //nolint:wrapcheck // It is for people already.
		}
		u = draft.Clean(got)
		base = baseText(u, got.GetResourceVersion())
	}
	page := s.editPage(c, u, base)
	page.Fresh = true

	return s.render(c, http.StatusOK, "edit", page)
}

// blank object of the kind.
func (c *call) blank() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetAPIVersion(c.kind.GroupVersion().String())
	u.SetKind(c.kind.Name)
	u.SetNamespace(c.namespace)

	return u
}

// baseText is the text of what an edit began with, and its version.
func baseText(clean *unstructured.Unstructured, version string) string {
	u := clean.DeepCopy()
	u.SetResourceVersion(version)

	return draft.Text(u)
}

func (s *Server) editPage(c *call, u *unstructured.Unstructured, base string) editPage {
	title := "New " + c.kind.Name
	if c.name != "" {
		title = "Edit " + c.name
	}
	page := editPage{frame: s.frame(c, title), Kind: c.kind, Name: c.name, Named: u.GetName(), YAML: draft.Text(u), Base: base}
	page.Fields = form.Values(c.fields(), u.Object)
	page.More = slices.ContainsFunc(page.Fields, func(f form.Field) bool { return f.Advanced && f.Value != "" })

	return page
}

func (c *call) fields() []form.Field {
	fields, err := form.Read(c.kind.Form)
	if err != nil {
		return nil // A test reads all of them.
	}

	return fields
}

// A submission is the draft that a person sent.
type submission struct {
	draft *unstructured.Unstructured
	// base of an edit, without and with its version.
	base    *unstructured.Unstructured
	text    string
	version string
	// tries so far to apply it to the version of now.
	tries int
}

// mostTries to apply a draft while only the status changes. What refuses it then is another conflict, for instance of an admission webhook.
const mostTries = 3

// parseSubmission returns the draft: the YAML, with what was changed in the form.
func (c *call) parseSubmission() (submission, error) {
	var sub submission
	u, err := draft.Parse(c.r.PostFormValue("yaml"))
	if err != nil {
		return sub, err //nolint:wrapcheck // It is for people already.
	}
	shown, err := draft.Parse(c.r.PostFormValue("shown"))
	if err != nil {
		shown = c.blank()
	}
	err = form.Apply(u.Object, form.Values(c.fields(), shown.Object), func(path string) string { return c.r.PostFormValue(fieldPrefix + path) })
	if err != nil {
		return sub, err //nolint:wrapcheck // It is for people already.
	}
	if name := strings.TrimSpace(c.r.PostFormValue("name")); c.name == "" && name != shown.GetName() {
		u.SetName(name)
	}
	sub.draft = u
	if c.name != "" {
		sub.text = c.r.PostFormValue("base")
		if sub.base, err = draft.Parse(sub.text); err != nil {
			return sub, errors.New("this page has lost what its edit began with: open it again")
		}
		sub.version = sub.base.GetResourceVersion()
		sub.base.SetResourceVersion("")
	}
	// People do not edit these here, and a version would hide a conflict.
	u.SetResourceVersion("")
	u.SetManagedFields(nil)
	delete(u.Object, "status")

	return sub, draft.Expect(u, c.kind.GroupVersion().String(), c.kind.Name, c.namespace, c.name) //nolint:wrapcheck // It is for people already.
}

// submit a draft: check it, plan it, download it, or apply it.
func (s *Server) submit(c *call) error {
	if c.kind.Form == nil {
		return errNotFound
	}
	sub, err := c.parseSubmission()
	if err != nil {
		return s.showAgain(c, sub, problemOf(err))
	}
	text := draft.Text(sub.draft)
	switch c.r.PostFormValue("do") {
	case "download":
		c.w.Header().Set("Content-Type", "application/yaml")
		c.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", strings.ToLower(c.kind.Name)+".yaml"))
		_, _ = c.w.Write([]byte(text))

		return nil
	case "apply":
		// Only what the API server has checked, and the person has seen, is applied.
		if c.r.PostFormValue("checked") == sumOf(text) {
			return s.apply(c, sub)
		}
	}

	return s.check(c, sub)
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))

	return hex.EncodeToString(sum[:])
}

// showAgain shows the form with what was typed, and why it was not taken.
func (s *Server) showAgain(c *call, sub submission, p *kube.Problem) error {
	u := sub.draft
	if u == nil {
		u = c.blank()
	}
	page := s.editPage(c, u, c.r.PostFormValue("base"))
	page.Problem = p
	if sub.draft == nil {
		// What cannot be read is shown as it was typed.
		page.YAML, page.Named = c.r.PostFormValue("yaml"), c.r.PostFormValue("name")
		for i, f := range page.Fields {
			page.Fields[i].Value = c.r.PostFormValue(fieldPrefix + f.Path)
		}
	}

	return s.render(c, p.Status, "edit", page)
}

// send the draft to the API server, in earnest or not.
func (s *Server) send(c *call, sub submission, dry bool) (*unstructured.Unstructured, error) {
	if c.name == "" {
		return c.client.Create(c.r.Context(), c.kind.GroupVersionResource, sub.draft, dry) //nolint:wrapcheck // It is for people already.
	}
	patch, err := draft.Patch(sub.base, sub.draft, sub.version)
	if err != nil {
		return nil, err //nolint:wrapcheck // It is for people already.
	}

	return c.client.Patch(c.r.Context(), c.kind.GroupVersionResource, c.namespace, c.name, patch, dry) //nolint:wrapcheck // It is for people already.
}

// refused reports what the API server does not take.
func (s *Server) refused(c *call, sub submission, err error) error {
	switch {
	case kube.Ended(err):
		return err
	case apierrors.IsConflict(err) && c.name != "" && sub.tries < mostTries:
		return s.conflict(c, sub)
	case apierrors.IsAlreadyExists(err):
		return s.showAgain(c, sub, &kube.Problem{
			Title:  "The name is taken",
			Detail: fmt.Sprintf("Namespace %s has a %s %s already. Choose another name, or edit that one.", c.namespace, c.kind.Name, sub.draft.GetName()), Status: http.StatusConflict,
		})
	default:
		return s.showAgain(c, sub, problemOf(err))
	}
}

func (s *Server) check(c *call, sub submission) error {
	got, err := s.send(c, sub, true)
	if err != nil {
		return s.refused(c, sub, err)
	}
	page := s.editPage(c, sub.draft, sub.text)
	page.Checked = sumOf(draft.Text(sub.draft))
	before := ""
	if sub.base != nil {
		before = draft.Text(sub.base)
	}
	page.Diff = draft.Diff(before, draft.Text(draft.Clean(got)))
	if c.r.PostFormValue("do") != "plan" {
		return s.render(c, http.StatusOK, "edit", page)
	}
	part := c.r.PostFormValue("part") != ""
	if part && c.r.PostFormValue("checked") != page.Checked {
		page.Plan = &foreseen{Problem: errPlanOther}
	} else if page.Plan, err = s.plan(c, got); err != nil {
		return err
	}
	if part {
		c.w.Header().Set("X-Part", "plan")

		return s.render(c, http.StatusOK, "plan", page.Plan)
	}

	return s.render(c, http.StatusOK, "edit", page)
}

func (s *Server) apply(c *call, sub submission) error {
	got, err := s.send(c, sub, false)
	if err != nil {
		return s.refused(c, sub, err)
	}
	word := "edited"
	if c.name == "" {
		word = "created"
	}

	return c.redirect(fmt.Sprintf("/n/%s/%s/o/%s?did=%s", c.namespace, c.kind.Resource, got.GetName(), word))
}

// conflict shows what both changed since the edit began, and continues with the changes of both.
func (s *Server) conflict(c *call, sub submission) error {
	got, err := c.client.Get(c.r.Context(), c.kind.GroupVersionResource, c.namespace, c.name)
	if err != nil {
		return s.refused(c, sub, err)
	}
	theirs := draft.Clean(got)
	merged, conflicts := draft.Merge(sub.base, sub.draft, theirs)
	page := s.editPage(c, merged, baseText(theirs, got.GetResourceVersion()))
	base := draft.Text(sub.base)
	page.Theirs, page.Mine, page.Conflicts = draft.Diff(base, draft.Text(theirs)), draft.Diff(base, draft.Text(sub.draft)), conflicts
	if len(page.Theirs) == 0 {
		// Only what people do not write has changed, such as the status: the draft counts as it is, for the version of now.
		sub.base, sub.text, sub.version, sub.tries = theirs, page.Base, got.GetResourceVersion(), sub.tries+1
		if c.r.PostFormValue("do") == "apply" {
			return s.apply(c, sub)
		}

		return s.check(c, sub)
	}

	return s.render(c, http.StatusConflict, "edit", page)
}
