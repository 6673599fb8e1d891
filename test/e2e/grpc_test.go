// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// predictMethod of the demo server.
const predictMethod = "/demo.v1.Predictor/Predict"

// A rpcClient calls the demo server by gRPC through the Gateway.
type rpcClient struct{ connection *grpc.ClientConn }

// dial the Gateway for a host.
func dial(t *testing.T, host string) rpcClient {
	t.Helper()
	address := "passthrough:///" + strings.TrimPrefix(gateway, "http://") + ":80"
	c, err := grpc.NewClient(address, grpc.WithAuthority(host), grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })

	return rpcClient{c}
}

// predict returns the version that responds.
func (c rpcClient) predict(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out := &wrapperspb.StringValue{}
	if err := c.connection.Invoke(ctx, predictMethod, wrapperspb.String(`{"user": 1}`), out); err != nil {
		return "", err
	}
	var answer struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal([]byte(out.GetValue()), &answer); err != nil {
		return "", fmt.Errorf("cannot read the response %q: %w", out.GetValue(), err)
	}

	return answer.Version, nil
}

// A tallied is what became of requests by version, and of those that failed.
type tallied struct {
	mu       sync.Mutex
	versions map[string]int
	errors   []error
}

// of a version.
func (r *tallied) of(version string) int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.versions[version]
}

// flow sends gRPC requests at a rate until it is ended.
func flow(t *testing.T, c rpcClient) (*tallied, func()) {
	t.Helper()
	r := &tallied{versions: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		ticker := time.NewTicker(time.Second / rate)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			all.Go(func() {
				version, err := c.predict(ctx)
				r.mu.Lock()
				defer r.mu.Unlock()
				if err == nil {
					r.versions[version]++
				} else if ctx.Err() == nil {
					r.errors = append(r.errors, fmt.Errorf("at %s: %w", time.Now().Format(time.RFC3339Nano), err))
				}
			})
		}
	})

	return r, func() { cancel(); all.Wait() }
}

// TestGRPC serves gRPC through the Gateway: the probes ask the health protocol, a canary gets its share of the requests and is
// promoted by the metrics of the pods, no request is lost, and the protocol cannot change under a route.
func TestGRPC(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(50)), func(a *v1alpha1.Algorithm) {
			a.Spec.Protocol = v1alpha1.ProtocolGRPC
			a.Spec.Probes = &v1alpha1.Probes{Path: "/demo.v1.Predictor"}
		})
	}
	create(t, reco("v1"))
	c := dial(t, host)
	eventually(t, "the Gateway sends gRPC requests to v1", func(ctx context.Context) error {
		switch version, err := c.predict(ctx); {
		case err != nil:
			return err
		case version != "v1":
			return fmt.Errorf("version %q responds", version)
		default:
			return nil
		}
	})
	route := &unstructured.Unstructured{}
	route.SetAPIVersion("gateway.networking.k8s.io/v1")
	route.SetKind("GRPCRoute")
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "reco"}, route); err != nil {
		t.Errorf("there is no GRPCRoute: %v", err)
	}
	if _, err := httpRoute(t.Context(), ns, "reco"); !kerrors.IsNotFound(err) {
		t.Errorf("there should be no HTTPRoute, got %v", err)
	}
	eventually(t, "the route is reported", algorithmCondition(ns, "reco", v1alpha1.TypeRouteAccepted, corev1.ConditionTrue, v1alpha1.ReasonRouteAccepted))
	eventually(t, "and where clients inside the cluster connect to", func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, "reco")
		if want := "reco." + ns + ".svc:80"; err == nil && a.Status.Endpoint != want {
			err = fmt.Errorf("status.endpoint is %q, want %q", a.Status.Endpoint, want)
		}

		return err
	})

	r, end := flow(t, c)
	edit(t, reco("v2"))
	within(t, 3*timeout, "half of the requests may reach v2", stepping(ns, "reco", 50))
	eventually(t, "v2 responds", func(context.Context) error {
		if r.of("v2") == 0 {
			return errors.New("it has not yet")
		}

		return nil
	})
	within(t, 4*timeout, "v2 is promoted", live(ns, "reco", "v2"))
	within(t, 3*timeout, "v1 is gone", alone(ns, "reco"))
	end()
	t.Logf("%d requests by v1 and %d by v2, %d lost", r.of("v1"), r.of("v2"), len(r.errors))
	if err := errors.Join(r.errors...); err != nil {
		t.Errorf("%d requests were lost: %.1000v", len(r.errors), err)
	}

	http := reco("v2")
	http.Spec.Protocol, http.Spec.Probes = v1alpha1.ProtocolHTTP, nil
	if err := apply(t.Context(), http); err == nil || !strings.Contains(err.Error(), "spec.protocol") {
		t.Errorf("another protocol under a route: want a refusal that names the field, got %v", err)
	}
}
