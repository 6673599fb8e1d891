// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/browser"
)

// TestConsole is a journey of two people through the console, in a real browser: one makes a Database and sees it come up and fail over, and the
// other one sees nothing of it.
func TestConsole(t *testing.T) {
	t.Parallel()
	mine, other := namespace(t), namespace(t)
	b := browser.Start(t, console(t, "capstan-console"))
	d := database(mine, "orders-db")
	d.Spec.Replicas = 2

	logIn(t, b, mine)
	b.Open("/?namespace=" + mine)
	b.Sees("Namespace "+mine, "Databases", "None.")
	b.Click("new-databases")
	b.Fill("f-name", d.Name)
	b.Choose("f-engine", "postgres")
	b.Fill("f-version", "17")
	b.Fill("f-replicas", "two")
	b.Fill("f-storage", "2Gi")
	b.Click("check")
	b.Sees(`is "two", and has to be a whole number`)
	b.Fill("f-replicas", "2")
	b.Click("check")
	b.Sees("The API server accepts it", "+   replicas: 2")
	// What the form does not have is written in the YAML beside it.
	yaml := browser.Value[string](b, "document.getElementById('yaml').value")
	yaml = strings.Replace(yaml, "spec:\n", "spec:\n  availability: {profile: Fast, spread: None}\n  deletionProtection: false\n  resources: {cpu: 50m, memory: 512Mi}\n", 1)
	b.Set("yaml", yaml)

	// The login ends while it is typed.
	b.Forget()
	b.Click("check")
	b.Sees("Your login has ended")
	if copied := browser.Value[string](b, "document.querySelector('textarea').value"); !strings.Contains(copied, "spread: None") {
		t.Errorf("what was typed can be copied, got %q", copied)
	}
	b.Set("token", token(t, mine))
	b.Press("main form button")
	b.Sees("What you typed here before is back")
	b.Click("check")
	b.Sees("The API server accepts it", "spread: None")
	b.Screenshot("check")
	t.Cleanup(func() { deleteDatabase(t, d) })
	b.Click("apply")
	b.Sees("Database "+d.Name, "It is created")

	// The page follows by itself.
	b.Until(creation, "document.getElementById('phase').textContent === 'Running'")
	b.Screenshot("database")
	before := leader(t, d)
	led := fmt.Sprintf("document.querySelector('svg g.lead text.name').textContent === %q", before.Labels["capstan.dev/member"])
	b.Until(timeout, led)
	b.Until(timeout, "document.body.innerText.includes('SyncStandby')")
	// In good order: a pod that is back within seconds would be the leader again.
	if err := kube.Delete(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	b.Until(timeout, "!("+led+")")
	b.Until(timeout, "document.body.innerText.includes('Last change of the leader')")
	b.Until(timeout, "document.getElementById('phase').textContent === 'Running'")
	b.Screenshot("failover")
	within(t, timeout, "it is Running again", running(d))

	eventually(t, "a switchover is offered", func(context.Context) error {
		b.Open("/n/" + mine + "/databases/o/" + d.Name)
		if !browser.Value[bool](b, "document.getElementById('act-switchover') !== null") {
			return errors.New("it is not")
		}

		return nil
	})
	b.Click("act-switchover")
	b.Sees("What will happen")
	b.Screenshot("switchover")
	after := leader(t, d)
	b.Click("confirm")
	b.Sees("It is requested")
	b.Until(timeout, fmt.Sprintf("document.querySelector('svg g.lead text.name').textContent !== %q", after.Labels["capstan.dev/member"]))

	for _, path := range []string{"/n/" + mine, "/n/" + mine + "/databases/o/" + d.Name, "/n/" + mine + "/databases/new"} {
		if cost := b.Cost(path); cost.Bytes > 300_000 {
			t.Errorf("%s has %.0f bytes, want at most 300 kB", path, cost.Bytes)
		}
	}
	b.Open("/n/" + mine)
	b.Screenshot("namespace")
	b.Press("body > header button")
	b.Sees("You are logged out")

	// Somebody who has rights elsewhere.
	logIn(t, b, other)
	b.Open("/n/" + mine)
	b.Sees("You may not list databases.capstan.dev in namespace " + mine)
	b.SeesNot(d.Name)
	b.Open("/n/" + mine + "/databases/o/" + d.Name)
	b.Sees("You may not get databases.capstan.dev in namespace " + mine)
	b.Open("/n/" + mine + "/databases/o/" + d.Name + "/act/switchover")
	b.Sees("You may not get databases.capstan.dev")
	b.Open("/n/" + other)
	b.Sees("Databases", "None.")
	b.SeesNot(d.Name)
	if ran := b.Ran(); len(ran) > 0 {
		t.Errorf("scripts opened dialogs or failed: %q", ran)
	}
}

// TestConsoleAlgorithm is a rollout through the console, in a real browser: an Algorithm is made by the form and edited, a candidate is seen
// with its share of traffic and what Prometheus measured of it, steps are approved, and a bad candidate is aborted. A user of another
// namespace sees nothing of it.
func TestConsoleAlgorithm(t *testing.T) {
	t.Parallel()
	mine, other := namespace(t), namespace(t)
	host, path := hostOf(mine, "reco"), "/n/"+mine+"/algorithms/o/reco"
	b := browser.Start(t, console(t, "capstan-console-algorithm"))
	logIn(t, b, mine)
	b.Open("/n/" + mine + "/algorithms/new")
	b.Fill("f-name", "reco")
	b.Fill("f-image", image())
	b.Fill("f-replicas", "2")
	b.Click("check")
	b.Sees("The API server accepts it", "+   replicas: 2")
	yaml := func(old, changed string) {
		t.Helper()
		text := browser.Value[string](b, "document.getElementById('yaml').value")
		if !strings.Contains(text, old) {
			t.Fatalf("the YAML lacks %q:\n%s", old, text)
		}
		b.Set("yaml", strings.Replace(text, old, changed, 1))
		b.Click("check")
		b.Sees("The API server accepts it")
		b.Click("apply")
		b.Sees("Algorithm reco")
	}
	yaml("spec:\n", fmt.Sprintf(`spec:
  availability: {drainSeconds: %d}
  env: [{name: VERSION, value: v1}]
  lifecycle: {approval: EveryStep, bake: 20s, minSamples: 50, soak: 10s, steps: [20, 50], successThreshold: 0.95}
  metrics: {window: %s}
  resources: {cpu: 10m, memory: 32Mi}
  route: {gateway: {name: shared, namespace: gateway}, host: %s}
`, drainSeconds, 2*evidenceEvery, host))
	b.Sees("It is created")
	b.Until(timeout, "document.getElementById('phase').textContent === 'Ready'")
	eventually(t, "the Gateway serves it", answers(host, "/predict", http.StatusOK))
	eventually(t, "its rollout is stable", rollout(mine, "reco", v1alpha1.RolloutStable, ""))
	calls := callOutside(t, calling(host, 60))

	// The page follows by itself, with the shares of both revisions.
	edited := func(old, changed string) {
		t.Helper()
		b.Open(path + "/edit")
		yaml(old, changed)
		b.Sees("The change is applied")
	}
	pictured := func(words string) {
		t.Helper()
		b.Until(3*timeout, fmt.Sprintf("document.querySelector('svg.picture')?.getAttribute('aria-label').includes(%q) === true", words))
	}
	waits := func() {
		t.Helper()
		b.Until(3*timeout, "document.body.innerText.includes('AwaitingApproval')")
	}
	act := func(name string) {
		t.Helper()
		eventually(t, name+" is offered", func(context.Context) error {
			b.Open(path)
			if !browser.Value[bool](b, fmt.Sprintf("document.getElementById('act-%s') !== null", name)) {
				return errors.New("it is not")
			}

			return nil
		})
		b.Click("act-" + name)
	}
	edited("value: v1", "value: v2")
	pictured("under test with 20 %")
	waits()
	candidate := rolloutOf(t.Context(), mine, "reco").Candidate
	b.Open(path)
	b.Until(timeout, "['live', 'candidate', 'bound'].every((role) => document.querySelector('svg.chart path.' + role) !== null)")
	b.Sees("revision "+candidate, "success: share of requests that succeed, at least 95 %", "Numbers of success")
	b.Screenshot("algorithm")

	act("approve")
	b.Press("main form button")
	b.Sees("Revision " + candidate + " may get up to 50 % of traffic once its evidence passes.")
	b.Click("confirm")
	b.Sees("It is requested")
	pictured("under test with 50 %")
	waits()
	act("approve")
	b.Press("main form button")
	b.Sees("Revision " + candidate + " may get all traffic once its evidence passes.")
	b.Click("confirm")
	within(t, 3*timeout, "it is promoted", rollout(mine, "reco", v1alpha1.RolloutStable, ""))
	within(t, timeout, "v2 is live", live(mine, "reco", "v2"))

	// A candidate that does not start.
	edited("value: v2", "value: v3\n  - name: START_DELAY\n    value: 10m0s")
	pictured("under test with 0 %")
	bad := rolloutOf(t.Context(), mine, "reco").Candidate
	act("abort")
	b.Sees("What will happen", bad)
	b.Click("confirm")
	b.Sees("It is requested")
	b.Until(3*timeout, "document.body.innerText.includes('RolledBack')")
	b.Screenshot("aborted")
	lossless(t, "clients of the Gateway", calls())

	b.Press("body > header button")
	b.Sees("You are logged out")
	logIn(t, b, other)
	for _, page := range []string{"", "/curves", "/edit", "/act/approve", "?curves=yes"} {
		b.Open(path + page)
		b.Sees("You may not get ", "in namespace "+mine)
		b.SeesNot(candidate, bad, "svg")
	}
	b.Open("/n/" + other)
	b.Sees("Algorithms", "None.")
	b.SeesNot("reco")
	if ran := b.Ran(); len(ran) > 0 {
		t.Errorf("scripts opened dialogs or failed: %q", ran)
	}
}

// console installs the console as its manifest does, in a namespace of this name, with the image of this version and the Prometheus of this
// cluster. It forwards a port to it.
func console(t *testing.T, name string) string {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(os.Getenv("CAPSTAN_ROOT"), "package", "console.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The lines for curves are comments: the argument, and the rule of the NetworkPolicy, which is the end of the file.
	manifest = regexp.MustCompile(`(?m)^( +)# (- --prometheus=|- to:|  )`).ReplaceAll(manifest, []byte("$1$2"))
	manifest = bytes.ReplaceAll(manifest, []byte("capstan-console"), []byte(name))
	own := fmt.Sprintf("%s/capstan-dev/capstan-console:%s", os.Getenv("CAPSTAN_REGISTRY"), os.Getenv("CAPSTAN_VERSION"))
	manifest = regexp.MustCompile(`ghcr\.io/\S+`).ReplaceAll(manifest, []byte(own))
	kubectl := func(stdin []byte, args ...string) string {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "kubectl", args...)
		cmd.Stdin = bytes.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}

		return string(out)
	}
	kubectl(nil, "apply", "--server-side", "-f", filepath.Join(os.Getenv("CAPSTAN_ROOT"), "package", "roles.yaml"))
	kubectl(manifest, "apply", "--server-side", "-f", "-")
	t.Cleanup(func() { kubectl(manifest, "delete", "--wait=false", "-f", "-") })
	kubectl(nil, "-n", name, "rollout", "status", "deployment/"+name, "--timeout=2m")
	if out := kubectl(nil, "auth", "can-i", "--list", "--as=system:serviceaccount:"+name+":"+name, "-n", "default"); strings.Contains(out, "capstan.dev") {
		t.Errorf("the console has rights of its own:\n%s", out)
	}

	forward := exec.CommandContext(context.WithoutCancel(t.Context()), "kubectl", "-n", name, "port-forward", "deployment/"+name, ":8080")
	out, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = forward.Process.Kill()
		_ = forward.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindStringSubmatch(lines.Text()); m != nil {
			go func() {
				_, _ = io.Copy(io.Discard, out)
			}()

			return "http://localhost:" + m[1]
		}
	}
	t.Fatal("kubectl port-forward gave no port")

	return ""
}

// token of a person who may edit in a namespace.
func token(t *testing.T, ns string) string {
	t.Helper()
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "person"}}
	may := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "person"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "person"}},
	}
	for _, o := range []client.Object{who, may} {
		if err := client.IgnoreAlreadyExists(kube.Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	seconds := int64(time.Hour / time.Second)
	got, err := clients.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "person", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return got.Status.Token
}

func logIn(t *testing.T, b *browser.Browser, ns string) {
	t.Helper()
	b.Open("/login")
	b.Set("token", token(t, ns))
	b.Press("main form button")
	b.Sees("system:serviceaccount:"+ns+":person", "Namespaces")
}
