// SPDX-License-Identifier: Apache-2.0

package pods

import (
	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/podspec"
)

// hookEnv begins the names of the variables of a hook.
const hookEnv = "CAPSTAN_HOOK_"

// HookTemplate is the pod of a hook's Job: its one container, under the account of the Algorithm, with variables that follow its own.
// No Service of the Algorithm selects it.
func (in Inputs) HookTemplate(c corev1.Container, env [][2]string) *applycorev1.PodTemplateSpecApplyConfiguration {
	c = podspec.Restricted(c, false)
	c.Name = "hook"
	for _, e := range env {
		if e[1] != "" {
			c.Env = append(c.Env, corev1.EnvVar{Name: hookEnv + e[0], Value: e[1]})
		}
	}
	security := applycorev1.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	security.RunAsUser = in.Spec.Pod.SecurityContext.RunAsUser
	pod := applycorev1.PodSpec().
		WithSecurityContext(security).
		WithEnableServiceLinks(false).
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithContainers(podspec.Applied[applycorev1.ContainerApplyConfiguration](c))
	for _, name := range pullSecrets(in) {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(name))
	}
	account(pod, in)
	return applycorev1.PodTemplateSpec().WithLabels(map[string]string{names.LabelHookOf: in.Name}).WithSpec(pod)
}
