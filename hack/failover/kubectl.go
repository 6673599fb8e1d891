// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// A kubectl works in one namespace.
type kubectl struct{ namespace string }

// do runs a command with an input, and returns its output.
func (k kubectl) do(ctx context.Context, input string, args ...string) (string, error) {
	var out, failure bytes.Buffer
	c := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace=" + k.namespace}, args...)...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &out, &failure
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("cannot run kubectl %s: %w: %s", strings.Join(args, " "), err, failure.String())
	}
	return out.String(), nil
}

// apply a manifest that is a template.
func (k kubectl) apply(ctx context.Context, manifest string, values any) error {
	t, err := template.New("").Option("missingkey=error").Parse(manifest)
	if err != nil {
		return fmt.Errorf("cannot read a manifest: %w", err)
	}
	var text bytes.Buffer
	if err := t.Execute(&text, values); err != nil {
		return fmt.Errorf("cannot fill in a manifest: %w", err)
	}
	_, err = k.do(ctx, text.String(), "apply", "--server-side", "--filename=-")
	return err
}

// pods that a selector selects.
func (k kubectl) pods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	l, err := list[corev1.PodList](ctx, k, "pods", "--selector="+selector)
	return l.Items, err
}

func (k kubectl) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	l, err := list[appsv1.DeploymentList](ctx, k, "deployments")
	return l.Items, err
}

func list[L any](ctx context.Context, k kubectl, args ...string) (L, error) {
	var l L
	out, err := k.do(ctx, "", append([]string{"get", "--output=json"}, args...)...)
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		return l, fmt.Errorf("cannot read what kubectl printed: %w", err)
	}
	return l, nil
}

// ready reports whether a pod is Ready.
func ready(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
