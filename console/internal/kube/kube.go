// SPDX-License-Identifier: Apache-2.0

// Package kube talks to the API server with the token of a user, and with nothing else. It keeps nothing from one request for the next.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// FieldManager of all edits.
const FieldManager = "capstan-console"

// timeout of one request to the API server.
const timeout = 15 * time.Second

// A Server is the address of an API server, without credentials.
type Server struct{ config *rest.Config }

// NewServer takes the address and the certificate authority of a configuration, and leaves its credentials.
func NewServer(config *rest.Config) *Server {
	anonymous := rest.AnonymousClientConfig(config)
	// One page asks for ten things at once, and another person's page must not wait for them.
	anonymous.QPS, anonymous.Burst = -1, 0
	anonymous.UserAgent = FieldManager
	anonymous.WarningHandler = rest.NoWarnings{}

	return &Server{config: anonymous}
}

// A Client has the rights of one user.
type Client struct{ objects dynamic.Interface }

// As is a client with the token of a user.
func (s *Server) As(token string) (*Client, error) {
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("a token is a line of letters, digits and signs, without spaces")
	}
	config := rest.CopyConfig(s.config)
	config.BearerToken = token
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	return &Client{objects: objects}, nil
}

// A Problem is why the API server did not do something, for people.
type Problem struct { //nolint:errname // Pages show it; it is an error beside that.
	// Title in a few words.
	Title string

	// Detail is what the API server says, or what is missing.
	Detail string

	// Status of HTTP.
	Status int

	err error
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }
func (p *Problem) Unwrap() error { return p.err }

// Ended reports whether the API server does not take the token any more.
func Ended(err error) bool { return apierrors.IsUnauthorized(err) }

// lacks is how an API server says that a user lacks a right. Quotas, policies and namespaces that end forbid as well, in words of their own.
var lacks = regexp.MustCompile(`cannot \w+ resource `)

// explain an error of the API server: a right that is missing is named.
func explain(err error, verb string, r schema.GroupVersionResource, namespace string) error {
	if err == nil {
		return nil
	}
	p := &Problem{Title: fmt.Sprintf("Cannot %s %s", verb, r.GroupResource()), Detail: err.Error(), Status: http.StatusBadGateway, err: err}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		p.Detail, p.Status = status.Status().Message, int(status.Status().Code)
	}
	in := ""
	if namespace != "" {
		in = " in namespace " + namespace
	}
	switch {
	case apierrors.IsUnauthorized(err):
		p.Title, p.Detail = "Your login has ended", "The API server does not accept the token any more. Log in again."
	case apierrors.IsForbidden(err) && lacks.MatchString(p.Detail):
		p.Title = "You lack a right"
		p.Detail = fmt.Sprintf("You may not %s %s%s. Ask the platform team for a role with the verb %s on %s there, for instance capstan-view to read or capstan-edit to change.",
			verb, r.GroupResource(), in, verb, r.GroupResource())
	case apierrors.IsNotFound(err) && strings.Contains(p.Detail, "the server could not find the requested resource"):
		p.Title, p.Detail = "This cluster has no "+r.Resource, fmt.Sprintf("Nothing serves %s: the platform team installs Capstan.", r.GroupResource())
	}

	return p
}

// User of the token, as the API server knows it.
func (c *Client) User(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resource := authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews")
	asked := &unstructured.Unstructured{Object: map[string]any{"apiVersion": resource.GroupVersion().String(), "kind": "SelfSubjectReview"}}
	got, err := c.objects.Resource(resource).Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return "", explain(err, "create", resource, "")
	}
	name, _, _ := unstructured.NestedString(got.Object, "status", "userInfo", "username")
	if name == "" || name == "system:anonymous" {
		return "", &Problem{Title: "You are not logged in", Detail: "The API server knows no user of this token.", Status: http.StatusUnauthorized}
	}

	return name, nil
}

// Namespaces by name. Few users may list them.
func (c *Client) Namespaces(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resource := corev1.SchemeGroupVersion.WithResource("namespaces")
	list, err := c.objects.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explain(err, "list", resource, "")
	}
	names := make([]string, 0, len(list.Items))
	for _, n := range list.Items {
		names = append(names, n.GetName())
	}
	slices.Sort(names)

	return names, nil
}

// List objects of a namespace, by name.
func (c *Client) List(ctx context.Context, r schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := c.objects.Resource(r).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explain(err, "list", r, namespace)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })

	return list.Items, nil
}

// Get one object.
func (c *Client) Get(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u, err := c.objects.Resource(r).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})

	return u, explain(err, "get", r, namespace)
}

func tried(dry bool) []string {
	if dry {
		return []string{metav1.DryRunAll}
	}

	return nil
}

// Create an object; a dry run only tries it.
func (c *Client) Create(ctx context.Context, r schema.GroupVersionResource, u *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got, err := c.objects.Resource(r).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{
		DryRun: tried(dry), FieldManager: FieldManager, FieldValidation: metav1.FieldValidationStrict,
	})

	return got, explain(err, "create", r, u.GetNamespace())
}

// Patch an object with a JSON merge patch; a dry run only tries it.
func (c *Client) Patch(ctx context.Context, r schema.GroupVersionResource, namespace, name string, patch []byte, dry bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got, err := c.objects.Resource(r).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{
		DryRun: tried(dry), FieldManager: FieldManager, FieldValidation: metav1.FieldValidationStrict,
	})

	return got, explain(err, "patch", r, namespace)
}

// Events of an object, the latest first.
func (c *Client) Events(ctx context.Context, u *unstructured.Unstructured) ([]corev1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resource := corev1.SchemeGroupVersion.WithResource("events")
	selector := fields.Set{"involvedObject.name": u.GetName(), "involvedObject.kind": u.GetKind()}.AsSelector().String()
	list, err := c.objects.Resource(resource).Namespace(u.GetNamespace()).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, explain(err, "list", resource, u.GetNamespace())
	}
	events := make([]corev1.Event, 0, len(list.Items))
	for i := range list.Items {
		var e corev1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &e); err != nil {
			return nil, fmt.Errorf("cannot read an event: %w", err)
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return Last(b).Compare(Last(a)) })

	return events, nil
}

// Last time of an event.
func Last(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	default:
		return e.EventTime.Time
	}
}

// Watch objects of a namespace, or the one of a name. It ends with its context.
func (c *Client) Watch(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (watch.Interface, error) {
	options := metav1.ListOptions{}
	if name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	w, err := c.objects.Resource(r).Namespace(namespace).Watch(ctx, options)

	return w, explain(err, "watch", r, namespace)
}
