// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/netns"
	"github.com/capstan-dev/capstan/hack/internal/network"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// Env is what a stage can use of the cluster.
type Env struct {
	Nodes    []network.Node
	Builder  *build.Builder
	Programs build.Programs
	Registry *image.Registry
	// Transport sends HTTP requests to the registry.
	Transport http.RoundTripper
	// Namespace is the path of the control plane's network namespace, Kubeconfig the administrator's.
	Namespace, Kubeconfig string
}

// Image builds and pushes an image that has one program of a tool at /NAME, unless the registry has it already, and
// returns its reference. The tag is the version of the tool.
func (e *Env) Image(ctx context.Context, tool, program string, more image.Spec) (string, error) {
	return e.ImageAs(ctx, tool, "/"+program, tool, program, more)
}

// ImageAs is Image for a tool with a second image, or for a program that must lie elsewhere.
func (e *Env) ImageAs(ctx context.Context, repository, path, tool, program string, more image.Spec) (string, error) {
	version, err := e.Builder.Version(tool)
	if err != nil {
		return "", err
	}
	more.Platform = platform()
	more.Entrypoint = []string{path}
	more.Files = append(more.Files, image.File{Path: path, Mode: 0o755, Source: e.Programs.Path(tool, program)})
	return e.Registry.Ensure(ctx, repository, version, more)
}

// Apply renders a manifest with these values and applies it.
func (e *Env) Apply(ctx context.Context, manifest string, values map[string]any) error {
	rendered, err := render(manifest, values)
	if err != nil {
		return err
	}
	_, err = e.apply(ctx, rendered, "-")
	return err
}

// Define applies files with definitions of custom resources and returns when the API server has taken them in.
func (e *Env) Define(ctx context.Context, files ...string) error {
	names, err := e.apply(ctx, nil, files...)
	if err != nil {
		return err
	}
	return established(ctx, e.Kubectl, strings.Fields(names))
}

// established waits for definitions. By --for=condition one that has no conditions yet is an error, by its path only one whose
// conditions are null, as the API server writes it first.
func established(ctx context.Context, kubectl func(ctx context.Context, args ...string) (string, error), names []string) error {
	args := append([]string{"wait", `--for=jsonpath={.status.conditions[?(@.type=="Established")].status}=True`, "--timeout=1m"}, names...)
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := kubectl(ctx, args...)
		if err != nil && strings.Contains(err.Error(), "<nil> is not array or slice and cannot be filtered") {
			return false, nil
		}
		return err == nil, err
	})
}

// apply applies files and returns the names of what is in them.
func (e *Env) apply(ctx context.Context, stdin []byte, files ...string) (string, error) {
	fixed := []string{"apply", "--server-side", "--force-conflicts", "--field-manager=capstan-cluster", "--output=name"}
	args := make([]string, 0, len(fixed)+len(files))
	args = append(args, fixed...)
	for _, file := range files {
		args = append(args, "--filename="+file)
	}
	return e.run(ctx, stdin, e.Programs.Path("kubernetes", "kubectl"), args...)
}

// Kubectl runs kubectl as administrator and returns what it prints.
func (e *Env) Kubectl(ctx context.Context, args ...string) (string, error) {
	return e.run(ctx, nil, e.Programs.Path("kubernetes", "kubectl"), args...)
}

// Rollout waits for a Deployment to run as it is described now.
func (e *Env) Rollout(ctx context.Context, namespace, deployment string) error {
	_, err := e.Kubectl(ctx, "rollout", "status", "--timeout=5m", "-n", namespace, "deployment/"+deployment)
	return err
}

func (e *Env) run(ctx context.Context, stdin []byte, program string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig)
	if err := netns.Do(e.Namespace, cmd.Start); err != nil {
		return "", fmt.Errorf("cannot run %s: %w", program, err)
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("cannot run %s %q: %w: %s", program, args, err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), nil
}

func render(manifest string, values map[string]any) ([]byte, error) {
	tmpl, err := template.New(manifest).Option("missingkey=error").ParseFS(manifests, "manifests/"+manifest)
	if err != nil {
		return nil, fmt.Errorf("cannot parse manifest %q: %w", manifest, err)
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("cannot render manifest %q: %w", manifest, err)
	}
	return out.Bytes(), nil
}

func platform() string { return "linux/" + runtime.GOARCH }
