// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// ask the Gateway for a path of a host.
func ask(ctx context.Context, host, path string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+path, nil)
	if err != nil {
		return 0, err
	}
	req.Host = host
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}

	return rsp.StatusCode, rsp.Body.Close()
}

// answers fails until the Gateway responds with a status.
func answers(host, path string, want int) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := ask(ctx, host, path)
		if err == nil && got != want {
			err = fmt.Errorf("the Gateway answers %d for http://%s%s, want %d", got, host, path, want)
		}

		return err
	}
}

// httpRoute of an Algorithm.
func httpRoute(ctx context.Context, ns, name string) (*unstructured.Unstructured, error) {
	r := &unstructured.Unstructured{}
	r.SetAPIVersion("gateway.networking.k8s.io/v1")
	r.SetKind("HTTPRoute")

	return r, kube.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, r)
}

// tellsRoute fails until the status has a route.
func tellsRoute(ns, name, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err == nil && a.Status.Route != want {
			err = fmt.Errorf("status.route is %q, want %q", a.Status.Route, want)
		}

		return err
	}
}

// TestRoute edits an Algorithm from no route to one that no Gateway accepts, to one that works, and back.
func TestRoute(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	first, second := "first."+ns+".example.org", "second."+ns+".example.org"
	reco := func(v string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", append(modify, versioned(v), draining(drainSeconds))...)
	}
	to := func(host, gateway, section string) func(*v1alpha1.Algorithm) {
		return func(a *v1alpha1.Algorithm) {
			routed(host)(a)
			a.Spec.Route.Gateway.Name, a.Spec.Route.Gateway.SectionName = gateway, section
		}
	}
	create(t, reco("v1"))
	if _, err := httpRoute(t.Context(), ns, "reco"); !kerrors.IsNotFound(err) {
		t.Errorf("without spec.route there should be no HTTPRoute, got %v", err)
	}
	w := witnessOf(t, ns, "reco")

	// A missing Gateway, and then a missing listener: each is reported, and blocks no revision.
	edit(t, reco("v2", to(first, "no-such-gateway", "")))
	eventually(t, "the status reports that no Gateway takes the route", algorithmCondition(ns, "reco", v1alpha1.TypeRouteAccepted, corev1.ConditionFalse,
		v1alpha1.ReasonRoutePending, `"no-such-gateway"`, `"gateway"`))
	within(t, 2*timeout, "traffic goes to v2 all the same", live(ns, "reco", "v2"))
	edit(t, reco("v2", to(first, "shared", "no-such-listener")))
	eventually(t, "the status reports that the Gateway refuses the route", algorithmCondition(ns, "reco", v1alpha1.TypeRouteAccepted, corev1.ConditionFalse,
		v1alpha1.ReasonRouteRefused, "NoMatchingParent", "spec.route"))
	eventually(t, "and that there is no route", tellsRoute(ns, "reco", ""))
	within(t, 2*timeout, "v1 is gone", alone(ns, "reco"))
	edit(t, reco("v3", to(first, "shared", "no-such-listener")))
	within(t, 2*timeout, "traffic goes to v3 although the route is refused", live(ns, "reco", "v3"))

	// A route that works, and then one for another host.
	edit(t, reco("v3", to(first, "shared", "web")))
	began := time.Now()
	eventually(t, "the Gateway serves the route", answers(first, "/predict", http.StatusOK))
	t.Logf("served %s after the edit", time.Since(began).Round(10*time.Millisecond))
	eventually(t, "it is reported", algorithmCondition(ns, "reco", v1alpha1.TypeRouteAccepted, corev1.ConditionTrue, v1alpha1.ReasonRouteAccepted))
	eventually(t, "with its address", tellsRoute(ns, "reco", first+"/"))
	edit(t, reco("v3", to(second, "shared", "web"), func(a *v1alpha1.Algorithm) { a.Spec.Route.Path = "/predict" }))
	eventually(t, "the Gateway serves the other host", answers(second, "/predict", http.StatusOK))
	eventually(t, "and not the one before", answers(first, "/predict", http.StatusNotFound))
	eventually(t, "and not another path", answers(second, "/healthz", http.StatusNotFound))
	eventually(t, "the address is reported", tellsRoute(ns, "reco", second+"/predict"))

	// No route any more.
	edit(t, reco("v3"))
	eventually(t, "the Gateway serves nothing", answers(second, "/predict", http.StatusNotFound))
	eventually(t, "there is no route", func(ctx context.Context) error {
		if _, err := httpRoute(ctx, ns, "reco"); !kerrors.IsNotFound(err) {
			return fmt.Errorf("it is still there (%w)", err)
		}

		return tellsRoute(ns, "reco", "")(ctx)
	})
	eventually(t, "still Ready", ready(ns, "reco", v1alpha1.PhaseReady, 1))
	// Three revisions of one pod each: a route makes no revision.
	w.end(t, 3, 2)
}

// TestRouteTimeout expects a Gateway to enforce a timeout, or a condition that reports that it may not. Traefik 3.6
// does not.
func TestRouteTimeout(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := "slow." + ns + ".example.org"
	create(t, algorithm(ns, "slow", variable("LATENCY_MS", "3000"), routed(host), func(a *v1alpha1.Algorithm) {
		a.Spec.Route.Timeout = &metav1.Duration{Duration: time.Second}
	}))
	var status int
	eventually(t, "the Gateway answers", func(ctx context.Context) error {
		var err error
		if status, err = ask(ctx, host, "/predict"); err == nil && status == http.StatusNotFound {
			err = errors.New("the Gateway does not know the route")
		}

		return err
	})
	r, err := httpRoute(t.Context(), ns, "slow")
	if err != nil {
		t.Fatal(err)
	}
	rules, _, _ := unstructured.NestedSlice(r.Object, "spec", "rules")
	if timeout, _, _ := unstructured.NestedString(rules[0].(map[string]any), "timeouts", "request"); timeout != "1s" {
		t.Errorf("the HTTPRoute has the timeout %q, want 1s", timeout)
	}
	t.Logf("a timeout of 1 s, and an answer after 3: status %d", status)
	if status != http.StatusGatewayTimeout {
		eventually(t, "it is reported where to look whether the timeout counts", algorithmCondition(ns, "slow", v1alpha1.TypeRouteAccepted, corev1.ConditionTrue,
			v1alpha1.ReasonRouteAccepted, "spec.route.timeout", "HTTPRouteRequestTimeout"))
	}
}
