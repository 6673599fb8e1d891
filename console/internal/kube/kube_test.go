// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestExplain(t *testing.T) {
	databases := Kinds[1].GroupVersionResource
	resource := databases.GroupResource()
	cases := map[string]struct {
		reason string
		err    error
		title  string
		detail string
		status int
	}{
		"Forbidden": {
			reason: "The right that is missing, and a role that has it.", err: apierrors.NewForbidden(resource, "orders-db", errors.New(`User "alice" cannot list resource "databases" in API group "capstan.dev" in the namespace "shop"`)),
			title: "You lack a right", detail: "You may not list databases.capstan.dev in namespace shop", status: 403,
		},
		"Policy": {
			reason: "A policy is no missing right: what it says counts.", err: apierrors.NewForbidden(resource, "orders-db", errors.New("ValidatingAdmissionPolicy 'x' denied the request: it is protected")),
			title: "Cannot list databases.capstan.dev", detail: "it is protected", status: 403,
		},
		"Quota": {
			reason: "A quota is no missing right.", err: apierrors.NewForbidden(resource, "orders-db", errors.New("exceeded quota: objects, requested: count/databases.capstan.dev=1")),
			title: "Cannot list databases.capstan.dev", detail: "exceeded quota", status: 403,
		},
		"Ended":   {reason: "A login that is over.", err: apierrors.NewUnauthorized("x"), title: "Your login has ended", detail: "Log in again", status: 401},
		"NoKind":  {reason: "Capstan is not installed.", err: apierrors.NewGenericServerResponse(404, "get", resource, "", "", 0, true), title: "This cluster has no databases", detail: "Nothing serves databases.capstan.dev", status: 404},
		"NoThing": {reason: "An object that is not there.", err: apierrors.NewNotFound(resource, "orders-db"), title: "Cannot list", detail: `"orders-db" not found`, status: 404},
		"Down":    {reason: "No answer at all.", err: errors.New("connection refused"), title: "Cannot list", detail: "connection refused", status: 502},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p *Problem
			if !errors.As(explain(tc.err, "list", databases, "shop"), &p) {
				t.Fatal("it is not explained")
			}
			if !strings.Contains(p.Title, tc.title) || !strings.Contains(p.Detail, tc.detail) || p.Status != tc.status {
				t.Errorf("%s Got %+v", tc.reason, p)
			}
			if !errors.Is(p, tc.err) {
				t.Errorf("%s the cause is lost", tc.reason)
			}
		})
	}
	if explain(nil, "list", databases, "shop") != nil {
		t.Error("no error has nothing to explain")
	}
}

func TestTokens(t *testing.T) {
	s := NewServer(&rest.Config{Host: "https://localhost:1"})
	for token, ok := range map[string]bool{"": false, "a b": false, "a\r\nX: y": false, "ü": false, "eyJ.a-_.b": true} {
		if _, err := s.As(token); (err == nil) != ok {
			t.Errorf("token %q: want %t, got %v", token, ok, err)
		}
	}
}

func TestResourceOf(t *testing.T) {
	for kind, want := range map[string]string{
		"Service": "services", "Analysis": "analyses", "Topology": "topologies", "Access": "accesses", "NetworkPolicy": "networkpolicies", "PrometheusRule": "prometheusrules", "HTTPRoute": "httproutes",
		"VolumeClaim": "volumeclaims", "StatefulSet": "statefulsets",
	} {
		if got := ResourceOf("x.dev/v1", kind).Resource; got != want {
			t.Errorf("%s: want %s, got %s", kind, want, got)
		}
	}
	for _, other := range [][2]string{{"v1", "Pods/x/proxy"}, {"v1", "../nodes"}, {"../v1", "Pod"}, {"x/../v1", "Pod"}, {"../x/v1", "Pod"}, {"v1", ""}} {
		if got := ResourceOf(other[0], other[1]); !got.Empty() {
			t.Errorf("%v is no kind, got %v", other, got)
		}
	}
	if _, ok := KindOf("secrets"); ok {
		t.Error("Secrets are no kind of the console")
	}
}

func TestLast(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC))
	for reason, e := range map[string]corev1.Event{
		"A series.":  {Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at.Time)}},
		"The old.":   {LastTimestamp: at},
		"A new one.": {EventTime: metav1.NewMicroTime(at.Time)},
	} {
		if !Last(e).Equal(at.Time) {
			t.Errorf("%s Got %s", reason, Last(e))
		}
	}
}
