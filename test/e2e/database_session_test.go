// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/onewriter"
)

// memberImage of an engine, which also has the client for its SQL.
func memberImage(name string) string {
	return os.Getenv("CAPSTAN_REGISTRY") + "/capstan-dev/" + name + ":" + os.Getenv("CAPSTAN_VERSION")
}

// postgresImage of the members, which also has psql.
func postgresImage() string { return memberImage("postgres") }

// writerImage of the client that counts writes.
func writerImage() string {
	return os.Getenv("CAPSTAN_REGISTRY") + "/capstan-dev/demo-database:" + os.Getenv("CAPSTAN_VERSION")
}

// clientOf a Database creates a pod with the Secret of a consumer.
func clientOf(d *v1alpha1.Database, name, consumer, image string) *corev1.Pod {
	secret := d.Name + "-" + consumer
	env := func(name, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key,
		}}}
	}

	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				RunAsUser:      ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			// An unreachable node keeps its clients.
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name:  "client",
				Image: image,
				Env: []corev1.EnvVar{
					env("PGHOST", "host"), env("PGPORT", "port"), env("PGUSER", "username"), env("PGPASSWORD", "password"),
					env("PGDATABASE", "database"), env("URI", "uri"), env("MULTI_HOST_URI", "multi-host-uri"),
					{Name: "PGSSLMODE", Value: "verify-full"},
					{Name: "PGSSLROOTCERT", Value: "/etc/database/ca.crt"},
					{Name: "PGCONNECT_TIMEOUT", Value: "5"},
					env("MYSQL_PWD", "password"),
					{Name: "MYSQL_CA", Value: "/etc/database/ca.crt"},
					{Name: "HOME", Value: "/tmp"},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "ca", MountPath: "/etc/database", ReadOnly: true}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{{Name: "ca", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: secret, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}}}},
		},
	}
}

// start a pod and wait until it runs.
func start(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if err := kube.Create(t.Context(), p); err != nil {
		t.Fatalf("cannot create the pod %s: %v", p.Name, err)
	}
	t.Cleanup(func() { _ = kube.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
	eventually(t, "pod "+p.Name+" runs", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("phase is %s", p.Status.Phase)
		}

		return nil
	})
}

// A session is a pod with a client for SQL for one consumer.
type session struct {
	pod *corev1.Pod

	// client reads a script and prints nothing but values.
	client []string
}

// psql as a consumer.
func psql(t *testing.T, d *v1alpha1.Database, consumer string) session {
	t.Helper()

	return connect(t, d, consumer)
}

// connect a consumer with the client of the engine.
func connect(t *testing.T, d *v1alpha1.Database, consumer string) session {
	t.Helper()
	e := dialectOf(d)
	// A test can have sessions in several Databases of one namespace.
	p := clientOf(d, "sql-"+d.Name+"-"+consumer, consumer, memberImage(e.container))
	p.Spec.Containers[0].Command = []string{"sleep", "86400"}
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	start(t, p)
	s := session{pod: p, client: e.client}
	eventually(t, "consumer "+consumer+" can log in", func(context.Context) error {
		if out, err := s.run(t, "select 1"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}

		return nil
	})

	return s
}

// run a script, and return its output.
func (s session) run(t *testing.T, script string) (string, error) {
	t.Helper()

	return execIn(t.Context(), s.pod, "client", script, s.client...)
}

// must run a script.
func (s session) must(t *testing.T, script string) string {
	t.Helper()
	out, err := s.run(t, script)
	if err != nil {
		t.Fatalf("cannot run %q: %v: %s", script, err, out)
	}

	return strings.TrimSpace(out)
}

func (s session) end(t *testing.T) {
	t.Helper()
	if err := kube.Delete(t.Context(), s.pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session ends", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(s.pod), &corev1.Pod{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is still there (%w)", err)
		}

		return nil
	})
}

// execIn a container runs a command with an input, and returns both outputs.
func execIn(ctx context.Context, p *corev1.Pod, container, input string, command ...string) (string, error) {
	args := append([]string{"exec", "-i", "-n", p.Namespace, p.Name, "-c", container, "--"}, command...)
	c := exec.CommandContext(ctx, "kubectl", args...)
	c.Stdin = strings.NewReader(input)
	out, err := c.CombinedOutput()

	return string(out), err
}

// logs of a container, the last lines or all with 0.
func logs(ctx context.Context, p *corev1.Pod, container string, lines int64) string {
	o := &corev1.PodLogOptions{Container: container}
	if lines > 0 {
		o.TailLines = &lines
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	said, err := clients.CoreV1().Pods(p.Namespace).GetLogs(p.Name, o).DoRaw(ctx)
	if err != nil {
		return err.Error()
	}

	return string(said)
}

// gap is a time without an acknowledged write, as the writer reports it.
type gap struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Seconds float64   `json:"seconds"`
	Before  string    `json:"before"`
	After   string    `json:"after"`
	Error   string    `json:"error"`
}

// account of all rows of a writer, as the writer reports it.
type account struct {
	Acknowledged int64            `json:"acknowledged"`
	Failed       int64            `json:"failed"`
	Lost         []int64          `json:"lost"`
	Surplus      int64            `json:"surplus"`
	Longest      float64          `json:"longest"`
	Errors       map[string]int64 `json:"errors"`
}

// line of a writer's log, or of a prober's.
type line struct {
	First   string           `json:"first"`
	Gap     *gap             `json:"gap"`
	Account *account         `json:"account"`
	Taken   *onewriter.Write `json:"taken"`
}

func parse(log string) []line {
	var lines []line
	for text := range strings.Lines(log) {
		var l line
		if json.Unmarshal(bytes.TrimSpace([]byte(text)), &l) == nil {
			lines = append(lines, l)
		}
	}

	return lines
}

// A writer writes rows from one node, through the Service or with all hosts.
type writer struct {
	pod  *corev1.Pod
	node string
	way  string

	// life counts the lost writers of the node.
	life int
}

// How a writer connects.
const (
	byService = "rw"
	byHosts   = "hosts"
)

// write rows from a node until the test ends.
func write(t *testing.T, d *v1alpha1.Database, node, way string, life int) writer {
	t.Helper()
	name := fmt.Sprintf("writer-%s-%s-%d", way, node, life)
	p := clientOf(d, name, "writer", writerImage())
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](120)
	uri := "$(URI)"
	if way == byHosts {
		uri = "$(MULTI_HOST_URI)"
	}
	p.Spec.Containers[0].Args = []string{"--uri=" + uri, "--name=" + name, "--for=3h"}
	start(t, p)
	w := writer{pod: p, node: node, way: way, life: life}
	eventually(t, name+" writes", func(ctx context.Context) error {
		said := logs(ctx, p, "client", 0)
		if !slices.ContainsFunc(parse(said), func(l line) bool { return l.First != "" }) {
			return fmt.Errorf("it says %q", said)
		}

		return nil
	})

	return w
}

// gapsSince a time, as far as they have ended.
func (w writer) gapsSince(ctx context.Context, since time.Time) []gap {
	var gaps []gap
	for _, l := range parse(logs(ctx, w.pod, "client", 0)) {
		if l.Gap != nil && l.Gap.To.After(since) {
			gaps = append(gaps, *l.Gap)
		}
	}

	return gaps
}

// longest of gaps, in seconds; 0 without a relevant one.
func longest(gaps []gap) float64 {
	most := 0.0
	for _, g := range gaps {
		most = max(most, g.Seconds)
	}

	return most
}

// end the writing and return the account.
func (w writer) end(t *testing.T) account {
	t.Helper()
	said := follow(t, w.pod)
	if err := kube.Delete(t.Context(), w.pod); err != nil {
		t.Fatal(err)
	}
	last := said()
	lines := parse(last)
	if len(lines) != 1 || lines[0].Account == nil {
		t.Fatalf("writer %s ended without an account: %q", w.pod.Name, last)
	}

	return *lines[0].Account
}
