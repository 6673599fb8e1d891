// SPDX-License-Identifier: Apache-2.0

// Package pods renders the pods of a run, and the plan that their companions follow.
package pods

import (
	"encoding/json"
	"maps"
	"path"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/pipeline/names"
	"github.com/capstan-dev/capstan/function/podspec"
)

// volumePlan has the plan.
const volumePlan = "plan"

// Inputs are everything that reaches the pods of a run.
type Inputs struct {
	names.Names

	// Spec with its defaults.
	Spec v1alpha1.PipelineSpec
	// MemoryUnlimited reports whether the memory of the spec is only a request.
	MemoryUnlimited bool
	// CompanionImage of the platform's settings.
	CompanionImage string
	// Run is the id of the run, empty for scheduled ones.
	Run string
	// Args of the program in this run.
	Args []string
	// Memory in bytes, where it was raised.
	Memory int64
}

// ReservedVolume reports whether Capstan uses the name of a volume for itself.
func ReservedVolume(name string) bool { return jobpod.ReservedVolume(name, volumePlan) }

// Reserved folders of the container.
func Reserved() []string { return []string{path.Dir(runner.BinaryDir)} }

// resources of the pods, with the memory of this run.
func (in Inputs) resources() *v1alpha1.Resources {
	r := in.Spec.Resources.DeepCopy()
	if in.Memory > 0 {
		r.Memory = resource.NewQuantity(in.Memory, resource.BinarySI)
	}
	return r
}

// Template of the pods.
func (in Inputs) Template() (*applycorev1.PodTemplateSpecApplyConfiguration, error) {
	raw, err := json.Marshal(in.Plan())
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller says what it was for.
	}
	s := in.Spec
	pod := jobpod.Pod{
		Container: runner.Container, Image: s.Image, CompanionImage: in.CompanionImage,
		Command: []string{"run", "--"}, Args: slices.Concat(s.Command, in.Args),
		Folders: jobpod.Folders{Binary: runner.BinaryDir, Scratch: runner.ScratchDir},
		Ports:   []*applycorev1.ContainerPortApplyConfiguration{jobpod.Port(jobpod.PortState, runner.StatePort)},
		Env:     s.Env, Resources: in.resources(), MemoryUnlimited: in.MemoryUnlimited && in.Memory == 0,
		OwnEnv: []*applycorev1.EnvVarApplyConfiguration{applycorev1.EnvVar().WithName(runner.EnvJob).WithValueFrom(applycorev1.EnvVarSource().
			WithFieldRef(applycorev1.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.labels['" + batchv1.JobNameLabel + "']")))},
		Config: s.Config, Secrets: s.Secrets, VolumeMounts: s.VolumeMounts,
		OwnMounts: []*applycorev1.VolumeMountApplyConfiguration{jobpod.Mount(volumePlan, runner.PlanDir).WithReadOnly(true)},
		OwnVolumes: []*applycorev1.VolumeApplyConfiguration{jobpod.Volume(volumePlan).WithDownwardAPI(applycorev1.DownwardAPIVolumeSource().
			WithItems(applycorev1.DownwardAPIVolumeFile().WithPath(runner.PlanFile).
				WithFieldRef(applycorev1.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.annotations['" + runner.AnnotationPlan + "']"))))},
		Pod: s.Pod, Account: in.Shared(), Subdomain: in.Shared(),
		// The companion ends the processes within the grace period, and then itself.
		GraceSeconds: int64(jobpod.Seconds(s.GracePeriod)) + runner.LeaveSeconds,
		Metadata:     s.PodMetadata, Labels: in.RunLabels(in.Run), Annotations: map[string]string{runner.AnnotationPlan: string(raw)},
	}
	if s.Config != nil {
		pod.ConfigMap = in.Config(podspec.ConfigHash(s.Config))
	}
	if r := s.Resources.DeviceRequest; r != nil {
		pod.ClaimTemplate = in.DeviceClaim(podspec.DevicesHash(r))
	}
	return pod.Template(), nil
}

// JobSpec of the run.
func (in Inputs) JobSpec() (*applybatchv1.JobSpecApplyConfiguration, error) {
	template, err := in.Template()
	if err != nil {
		return nil, err
	}
	size := int32(1)
	if in.Spec.Engine == v1alpha1.PipelineSpark {
		size += *in.Spec.Spark.Executors
	}
	_, raises := Raise(in.Spec.Retry)
	return jobpod.Job{
		Size: size, Container: runner.Container, Final: []int32{runner.ExitFailed, runner.ExitMemory}, Gone: runner.ExitEnded, Killed: raises,
		DeadlineSeconds: int64(jobpod.Seconds(in.Spec.Deadline)), Template: template,
	}.Spec(), nil
}

// Raise is the first rule that raises the memory, if there is one.
func Raise(r *v1alpha1.PipelineRetry) (v1alpha1.PipelineRetryRule, bool) {
	i := slices.IndexFunc(r.Rules, func(rule v1alpha1.PipelineRetryRule) bool { return rule.Do == v1alpha1.PipelineDoRetryWithMemory })
	if i < 0 {
		return v1alpha1.PipelineRetryRule{}, false
	}
	return r.Rules[i], true
}

// Plan that the companions follow.
func (in Inputs) Plan() runner.Plan {
	return runner.Plan{
		Version: runner.PlanVersion, Pipeline: in.Name, Run: in.Run, Domain: in.Domain(), Roles: in.roles(), Retry: retry(in.Spec.Retry),
		GraceSeconds: jobpod.Seconds(in.Spec.GracePeriod),
	}
}

func (in Inputs) roles() []runner.Role {
	if in.Spec.Engine == v1alpha1.PipelineSpark {
		return in.spark()
	}
	return []runner.Role{{Name: "Program", Main: runner.Process{Name: "program", Args: true}}}
}

func retry(r *v1alpha1.PipelineRetry) runner.Retry {
	out := runner.Retry{Attempts: int(*r.Attempts), Backoff: backoff(r.Backoff), ResetSeconds: r.ResetAfter.Seconds()}
	for _, rule := range r.Rules {
		next := runner.Rule{Pattern: rule.When.Pattern, Class: runner.Class(rule.When.Class), Do: runner.Action(rule.Do)}
		for _, code := range rule.When.ExitCodes {
			next.ExitCodes = append(next.ExitCodes, int(code))
		}
		slices.Sort(next.ExitCodes)
		if rule.Attempts != nil && rule.Do == v1alpha1.PipelineDoRetry {
			next.Attempts = int(*rule.Attempts)
		}
		if rule.Backoff != nil {
			next.Backoff = new(backoff(rule.Backoff))
		}
		out.Rules = append(out.Rules, next)
	}
	return out
}

func backoff(b *v1alpha1.PipelineBackoff) runner.Backoff {
	return runner.Backoff{FromSeconds: b.From.Seconds(), ToSeconds: b.To.Seconds(), Factor: *b.Factor, JitterPercent: int(*b.JitterPercent)}
}

// settings of an engine as arguments, in order.
func settings(flag string, conf map[string]v1alpha1.PipelineSetting) []string {
	args := make([]string, 0, 2*len(conf))
	for _, name := range slices.Sorted(maps.Keys(conf)) {
		args = append(args, flag, name+"="+escape(string(conf[name])))
	}
	return args
}

// escape what the companion would replace.
func escape(text string) string { return podspec.Literal([]string{text})[0] }
