// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// gateway is the address of the embedded cluster's Gateway, for pods and for these tests.
const gateway = "http://gateway.gateway.svc"

// How clients reach an Algorithm.
const (
	outsideKept = "through the Gateway, on connections that are kept"
	outsideNew  = "through the Gateway, on a new connection for each request"
	insideKept  = "through the Service, on connections that are kept"
	insideNew   = "through the Service, on a new connection for each request"
)

// A traffic is a set of clients of an Algorithm. Each function ends one and returns the result of its requests.
type traffic map[string]func() *load.Report

// rate of requests per second of each kind of client. There are many tests, and two cores.
const rate = 20

// callers are clients of the given kinds.
func callers(t *testing.T, ns, name, host string, kinds ...string) traffic {
	t.Helper()
	out := traffic{}
	for i, kind := range kinds {
		o := load.Options{Concurrency: 4, Rate: rate, Timeout: 10 * time.Second, NoKeepAlive: kind == outsideNew || kind == insideNew}
		if kind == outsideKept || kind == outsideNew {
			o.URL, o.Host = gateway+"/predict", host
			out[kind] = callOutside(t, o)

			continue
		}
		o.URL = "http://" + name + "/predict"
		out[kind] = callInside(t, ns, fmt.Sprintf("%s-caller-%d", name, i), o)
	}

	return out
}

// end all clients. It fails the test for each lost request.
func (c traffic) end(t *testing.T) map[string]*load.Report {
	t.Helper()
	out := map[string]*load.Report{}
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		r := c[kind]()
		out[kind] = r
		t.Logf("%d requests %s, %d lost; p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", r.Sent, kind, r.Lost(), r.P50Ms, r.P95Ms, r.P99Ms)
		if r.Lost() != 0 || r.Answered == 0 {
			t.Errorf("%s; these called %s from %s on", r.Summary(), kind, r.Started.Format(time.RFC3339Nano))
		}
	}

	return out
}

// callOutside sends requests from this process, which is outside the cluster but in its network.
func callOutside(t *testing.T, o load.Options) func() *load.Report {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var (
		report *load.Report
		err    error
	)
	done := make(chan struct{})
	go func() {
		defer close(done)
		report, err = load.Run(ctx, o)
	}()

	return func() *load.Report {
		cancel()
		<-done
		if err != nil {
			t.Fatal(err)
		}

		return report
	}
}

// callInside sends requests from a pod of the same namespace, which the NetworkPolicy of an Algorithm allows.
func callInside(t *testing.T, ns, name string, o load.Options) func() *load.Report {
	t.Helper()
	args := []string{
		"call", "--url=" + o.URL, "--for=1h", fmt.Sprintf("--concurrency=%d", o.Concurrency),
		fmt.Sprintf("--rate=%v", o.Rate), "--timeout=" + o.Timeout.String(),
		// The NetworkPolicies of a node allow a new pod only a moment after its start.
		"--wait=1m",
	}
	if o.NoKeepAlive {
		args = append(args, "--no-keep-alive")
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				RunAsUser:      ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:  "caller",
				Image: image(),
				Args:  args,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	if err := kube.Create(t.Context(), p); err != nil {
		t.Fatalf("cannot create the pod %s: %v", name, err)
	}
	eventually(t, "pod "+name+" calls", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("phase is %s", p.Status.Phase)
		}

		return nil
	})
	words := follow(t, p)

	return func() *load.Report {
		// The program reports when it is stopped.
		if err := kube.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		r := &load.Report{}
		last := words()
		if err := json.Unmarshal([]byte(last), r); err != nil {
			t.Fatalf("pod %s ended without a report: %q", name, last)
		}

		return r
	}
}

// follow the log of a pod. The returned function waits for its end and returns the last line.
func follow(t *testing.T, p *corev1.Pod) func() string {
	t.Helper()
	stream, err := clients.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatalf("cannot read the words of pod %s: %v", p.Name, err)
	}
	var said bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&said, stream)
	}()

	return func() string {
		<-done
		_ = stream.Close()
		last := ""
		for lines := bufio.NewScanner(&said); lines.Scan(); {
			if text := strings.TrimSpace(lines.Text()); text != "" {
				last = text
			}
		}

		return last
	}
}
