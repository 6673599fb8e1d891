// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/names"
)

// renewing is the maximum time until a pod uses a renewed certificate. The kubelet updates the file within a minute and
// a half, and a new authority is trusted for three minutes before one of its certificates is used.
const renewing = 6 * time.Minute

// sslRequest asks a server to switch to TLS:
// https://www.postgresql.org/docs/current/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SSLREQUEST
const sslRequest = 80877103

// shown returns the serial number of the certificate that a pod presents to clients.
func shown(ctx context.Context, p corev1.Pod) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	forward := exec.CommandContext(ctx, "kubectl", "port-forward", "-n", p.Namespace, "pod/"+p.Name, ":5432")
	out, err := forward.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := forward.Start(); err != nil {
		return "", fmt.Errorf("cannot reach %s: %w", p.Name, err)
	}
	defer func() {
		cancel()
		_ = forward.Wait() // it was stopped
	}()
	said, err := bufio.NewReader(out).ReadString('\n') // Forwarding from 127.0.0.1:40101 -> 5432
	fields := strings.Fields(said)
	if err != nil || len(fields) < 3 {
		return "", fmt.Errorf("cannot reach %s: kubectl says %q: %w", p.Name, said, err)
	}

	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fields[2])
	if err != nil {
		return "", fmt.Errorf("cannot connect with %s: %w", p.Name, err)
	}
	defer func() { _ = conn.Close() }()
	answer := make([]byte, 1)
	if _, err := conn.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), sslRequest)); err != nil {
		return "", fmt.Errorf("cannot ask %s for TLS: %w", p.Name, err)
	}
	if _, err := io.ReadFull(conn, answer); err != nil || answer[0] != 'S' {
		return "", fmt.Errorf("%s answers %q to a request for TLS: %w", p.Name, answer, err)
	}
	// This only reads the certificate; clients verify it.
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := c.HandshakeContext(ctx); err != nil {
		return "", fmt.Errorf("cannot see the certificate of %s: %w", p.Name, err)
	}

	return c.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// renew a Certificate like `cmctl renew`: by a condition that cert-manager acts on.
func renew(t *testing.T, ns, name string) {
	t.Helper()
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(names.CertificateGVK)
	if err := kube.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, c); err != nil {
		t.Fatal(err)
	}
	revision, _, _ := unstructured.NestedInt64(c.Object, "status", "revision")
	conditions, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
	conditions = append(conditions, map[string]any{
		"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "renewed by a test",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": c.GetGeneration(),
	})
	if err := errors.Join(unstructured.SetNestedSlice(c.Object, conditions, "status", "conditions"), kube.Status().Update(t.Context(), c)); err != nil {
		t.Fatalf("cannot renew Certificate %s: %v", name, err)
	}
	eventually(t, "Certificate "+name+" is renewed", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if now, _, _ := unstructured.NestedInt64(c.Object, "status", "revision"); now <= revision {
			return fmt.Errorf("revision is %d", now)
		}

		return nil
	})
}

// serversOf a Database are the pods that clients connect to: its members and poolers, by name.
func serversOf(t *testing.T, d *v1alpha1.Database) map[string]corev1.Pod {
	t.Helper()
	pods := poolersOf(t.Context(), t, d)
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}); err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		pods[p.Name] = p
	}

	return pods
}

// TestDatabaseCertificates renews the certificates of members and poolers, first with the same authority and then with
// a renewed one. Nothing restarts, and no client notices, with one connection or with many.
func TestDatabaseCertificates(t *testing.T) {
	d := database(namespace(t), "renewed", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 2
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
		d.Spec.Pooler = &v1alpha1.DatabasePooler{}
	})
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))
	within(t, creation, "both poolers take clients", databaseCondition(d, v1alpha1.TypePooled, corev1.ConditionTrue, v1alpha1.ReasonPooling))

	visitors := []visitor{visit(t, d, "uri"), visit(t, d, "pooler-uri")}
	writers := []writer{write(t, d, leader(t, d).Spec.NodeName, byService, 0), writeThrough(t, d, "pooled")}
	begun, before := time.Now(), serversOf(t, d)
	if len(before) != 4 {
		t.Fatalf("want two members and two poolers, got %d pods", len(before))
	}

	serials := map[string]string{}
	othersThanBefore := func(ctx context.Context) error {
		for name, p := range before {
			now, err := shown(ctx, p)
			if err != nil {
				return err
			}
			if now == serials[name] {
				return fmt.Errorf("%s shows %s still", name, now)
			}
		}

		return nil
	}
	for _, step := range []struct {
		name  string
		renew []string
	}{
		{"Leaf", []string{"renewed-members", "renewed-pooler"}},
		{"Authority", []string{"renewed-ca", "renewed-members", "renewed-pooler"}},
	} {
		t.Run(step.name, func(t *testing.T) {
			for name, p := range before {
				serial, err := shown(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				serials[name] = serial
			}
			asked := time.Now()
			for _, name := range step.renew {
				renew(t, d.Namespace, name)
			}
			within(t, renewing, "every pod shows another certificate", othersThanBefore)
			t.Logf("every pod shows another certificate after %s", time.Since(asked).Round(time.Second))
		})
	}

	// Standbys continue to replicate, with the same certificates.
	within(t, timeout, "all members follow", running(d))
	for name, p := range serversOf(t, d) {
		if p.UID != before[name].UID {
			t.Errorf("pod %s is another one", name)
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("container %s of %s started again", c.Name, name)
			}
		}
	}
	for _, v := range visitors {
		v.account(t)
	}
	for _, w := range writers {
		gap := longest(w.gapsSince(t.Context(), begun))
		a := w.end(t)
		t.Logf("%s: %+v, longest gap %.1f s", w.pod.Name, a, gap)
		if a.Failed > 0 || len(a.Lost) > 0 || gap > slack {
			t.Errorf("%s noticed: %+v, longest gap %.1f s", w.pod.Name, a, gap)
		}
	}
}
