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

	"github.com/capstan-dev/capstan/test/browser"
)

// TestConsole is a journey of two people through the console, in a real browser: one makes a Database and sees it come up and fail over, and the
// other one sees nothing of it.
func TestConsole(t *testing.T) {
	t.Parallel()
	mine, other := namespace(t), namespace(t)
	b := browser.Start(t, console(t))
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
	b.Fill("token", token(t, mine))
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

// console installs the console as its manifest does, with the image of this version, and forwards a port to it.
func console(t *testing.T) string {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(os.Getenv("CAPSTAN_ROOT"), "package", "console.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("%s/capstan-dev/capstan-console:%s", os.Getenv("CAPSTAN_REGISTRY"), os.Getenv("CAPSTAN_VERSION"))
	manifest = regexp.MustCompile(`ghcr\.io/capstan-dev/capstan-console:\S+`).ReplaceAll(manifest, []byte(own))
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
	kubectl(nil, "-n", "capstan-console", "rollout", "status", "deployment/capstan-console", "--timeout=2m")
	if out := kubectl(nil, "auth", "can-i", "--list", "--as=system:serviceaccount:capstan-console:capstan-console", "-n", "default"); strings.Contains(out, "capstan.dev") {
		t.Errorf("the console has rights of its own:\n%s", out)
	}

	forward := exec.CommandContext(context.WithoutCancel(t.Context()), "kubectl", "-n", "capstan-console", "port-forward", "deployment/capstan-console", ":8080")
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
	b.Fill("token", token(t, ns))
	b.Press("main form button")
	b.Sees("system:serviceaccount:"+ns+":person", "Namespaces")
}
