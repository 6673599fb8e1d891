// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

// checks of a spec with its defaults, all of them, so that one edit can correct
// everything. The schema holds most of the same bounds and answers sooner; these
// hold as well for what was stored under an older schema, and say what the API
// server would only say of the composed object, in an event.
var checks = []func(*state) []check.Problem{
	checkPlatform,
	checkSettings,
	checkName,
	checkImage,
	checkNumbers,
	checkEnv,
	checkConfig,
	checkSecrets,
	checkModel,
	checkMounts,
	checkResources,
	checkGPU,
	checkScaling,
	checkMetrics,
	checkSLO,
	checkLifecycle,
	checkExperiment,
	checkProbes,
	checkPorts,
	checkRoute,
	checkAccess,
	checkAvailability,
	checkScheduling,
	checkReferences,
}

// slotServiceEnding is how the names of Services of slots end.
var slotServiceEnding = regexp.MustCompile(`-slot-[ab]$`)

func checkPlatform(s *state) []check.Problem { return s.Unsupported }

func checkSettings(s *state) []check.Problem {
	if s.SettingsErr != nil {
		return check.Settings(s.SettingsErr)
	}

	var ps []check.Problem

	for field, q := range map[string]*resource.Quantity{
		"algorithm.cpu":    s.Settings.Algorithm.CPU,
		"algorithm.memory": s.Settings.Algorithm.Memory,
	} {
		if q == nil || q.Sign() <= 0 {
			ps = append(ps, check.Problem{
				Reason:  v1alpha1.ReasonInvalidSettings,
				Message: fmt.Sprintf("platform settings: %s: %v: must be set and greater than zero", field, q),
			})
		}
	}

	slices.SortFunc(ps, func(a, b check.Problem) int { return strings.Compare(a.Message, b.Message) })

	return ps
}

// checkName looks for names of objects that Kubernetes itself makes: a Service
// or ServiceAccount of the same name would be taken over, and be gone with the
// Algorithm.
func checkName(s *state) []check.Problem {
	if errs := validation.IsDNS1035Label(s.name); len(errs) > 0 {
		return []check.Problem{check.Invalid("metadata.name", s.name, check.Because(errs))}
	}

	if slotServiceEnding.MatchString(s.name) {
		return []check.Problem{check.Invalid("metadata.name", s.name, "ends like the Service of a slot of another Algorithm: choose another name")}
	}

	if s.name == "default" || s.name == "kubernetes" {
		return []check.Problem{check.Invalid("metadata.name", s.name, "is the name of an object that Kubernetes makes: choose another name")}
	}

	return nil
}

func checkImage(s *state) []check.Problem {
	if s.spec.Image == "" || strings.ContainsFunc(s.spec.Image, func(r rune) bool { return r <= ' ' }) {
		return []check.Problem{check.Invalid("spec.image", s.spec.Image, "must name an image, without white space")}
	}

	return nil
}

func checkNumbers(s *state) []check.Problem {
	ps := slices.Concat(
		check.Between("spec.replicas", *s.spec.Replicas, 0, 1000),
		check.Between("spec.port", *s.spec.Port, 1, 65535),
		check.Between("spec.revisionHistoryLimit", *s.spec.RevisionHistoryLimit, 0, 10),
	)

	if u := s.spec.RunAsUser; u != nil && (*u < 1 || *u > 1<<31-1) {
		ps = append(ps, check.Invalid("spec.runAsUser", *u, "must be from 1 to 2147483647, because pods may not run as root"))
	}

	return ps
}

func checkEnv(s *state) []check.Problem {
	var ps []check.Problem

	seen := map[string]bool{}

	for i, e := range s.spec.Env {
		field := fmt.Sprintf("spec.env[%d]", i)

		if errs := validation.IsEnvVarName(e.Name); len(errs) > 0 {
			ps = append(ps, check.Invalid(field+".name", e.Name, check.Because(errs)))
		}

		if seen[e.Name] {
			ps = append(ps, check.Invalid(field+".name", e.Name, "is there twice: remove one"))
		}

		seen[e.Name] = true

		if from := e.ValueFrom; from != nil {
			ps = append(ps, checkSource(field+".valueFrom", e.Value, from)...)
		}
	}

	if c := s.spec.Config; c != nil {
		for _, name := range sortedKeys(c.Env) {
			if errs := validation.IsEnvVarName(name); len(errs) > 0 {
				ps = append(ps, check.Invalid("spec.config.env", name, check.Because(errs)))
			}

			if seen[name] {
				ps = append(ps, check.Invalid("spec.config.env", name, "is in spec.env as well: remove one"))
			}
		}
	}

	return ps
}

func checkSource(field, value string, from *v1alpha1.EnvVarSource) []check.Problem {
	if value != "" {
		return []check.Problem{check.Invalid(field, value, "is set beside value: remove one of the two")}
	}

	if (from.SecretKeyRef == nil) == (from.ConfigMapKeyRef == nil) {
		return []check.Problem{{Reason: v1alpha1.ReasonInvalidSpec, Message: field + ": must have exactly one of secretKeyRef and configMapKeyRef"}}
	}

	kind, ref := "secretKeyRef", from.SecretKeyRef
	if ref == nil {
		kind, ref = "configMapKeyRef", from.ConfigMapKeyRef
	}

	var ps []check.Problem

	if errs := validation.IsDNS1123Subdomain(ref.Name); len(errs) > 0 {
		ps = append(ps, check.Invalid(field+"."+kind+".name", ref.Name, check.Because(errs)))
	}

	if errs := validation.IsConfigMapKey(ref.Key); len(errs) > 0 {
		ps = append(ps, check.Invalid(field+"."+kind+".key", ref.Key, check.Because(errs)))
	}

	return ps
}

// maxConfig leaves a quarter of the MiB that a ConfigMap may hold for its names
// and metadata, in bytes.
const maxConfig = 786432

func checkConfig(s *state) []check.Problem {
	c := s.spec.Config
	if c == nil {
		return nil
	}

	var ps []check.Problem

	if len(c.Files) == 0 && len(c.Env) == 0 {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.config: has neither files nor env: add a file or a variable, or remove spec.config"})
	}

	total := 0

	for _, name := range sortedKeys(c.Files) {
		total += len(c.Files[name])

		if errs := validation.IsConfigMapKey(name); len(errs) > 0 {
			ps = append(ps, check.Invalid("spec.config.files", name, check.Because(errs)))
		}
	}

	if total > maxConfig {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonConfigTooLarge, Message: fmt.Sprintf(
			"spec.config.files: %d bytes altogether: must be at most %d: put large files into the image", total, maxConfig)})
	}

	return ps
}

func checkResources(s *state) []check.Problem {
	var ps []check.Problem

	r := s.spec.Resources

	if q := r.CPU; q != nil && q.Sign() <= 0 {
		ps = append(ps, check.Invalid("spec.resources.cpu", q.String(), "must be greater than zero, for instance 500m"))
	}

	if q := r.Memory; q != nil && q.Cmp(leastMemory) < 0 {
		ps = append(ps, check.Invalid("spec.resources.memory", q.String(), memoryRemedy))
	}

	if q := r.SharedMemory; q != nil && q.Cmp(leastMemory) < 0 {
		ps = append(ps, check.Invalid("spec.resources.sharedMemory", q.String(), memoryRemedy))
	}

	return ps
}

// leastMemory that could mean anything. Who writes 512m means Mi, and asks for
// half a byte.
var leastMemory = resource.MustParse("1Mi")

const memoryRemedy = "must be at least 1Mi, for instance 512Mi (a small m is a thousandth)"

// checkGPU holds the rules that Kubernetes has for extended resources.
func checkGPU(s *state) []check.Problem {
	r := s.spec.Resources
	if r.GPU == "" && r.GPUCount != nil {
		return []check.Problem{check.Invalid("spec.resources.gpuCount", *r.GPUCount,
			"needs spec.resources.gpu: name the resource of the GPU as nodes advertise it, for instance nvidia.com/gpu")}
	}

	if r.GPU == "" && len(r.GPUProducts) > 0 {
		return []check.Problem{check.Invalid("spec.resources.gpuProducts", r.GPUProducts,
			"needs spec.resources.gpu: name the resource of the GPU as nodes advertise it, for instance nvidia.com/gpu")}
	}

	if r.GPU == "" {
		return nil
	}

	var ps []check.Problem

	for i, product := range r.GPUProducts {
		field := fmt.Sprintf("spec.resources.gpuProducts[%d]", i)
		if errs := validation.IsValidLabelValue(string(product)); len(errs) > 0 || product == "" {
			ps = append(ps, check.Invalid(field, string(product), "must be the value of a node's label: "+check.Because(errs)))
		}
	}

	native := !strings.Contains(r.GPU, "/") || strings.Contains(r.GPU, "kubernetes.io/") || strings.HasPrefix(r.GPU, "requests.")
	if errs := validation.IsQualifiedName("requests." + r.GPU); len(errs) > 0 || native {
		ps = append(ps, check.Invalid("spec.resources.gpu", r.GPU, "must be a resource that nodes advertise, of the form vendor/device, for instance nvidia.com/gpu"))
	}

	return append(ps, check.Between("spec.resources.gpuCount", *r.GPUCount, 1, 64)...)
}

// share from 1% to 100%.
var share = regexp.MustCompile(`^([1-9]|[1-9][0-9]|100)%$`)

func checkAvailability(s *state) []check.Problem {
	a := s.spec.Availability

	ps := slices.Concat(
		check.Among("spec.availability.zones", a.Zones, v1alpha1.SpreadPreferred, v1alpha1.SpreadRequired, v1alpha1.SpreadNone),
		check.Between("spec.availability.drainSeconds", *a.DrainSeconds, 1, 3600),
	)

	most := *a.MaxUnavailable
	if most.Type == intstr.Int && most.IntVal < 1 || most.Type == intstr.String && !share.MatchString(most.StrVal) {
		ps = append(ps, check.Invalid("spec.availability.maxUnavailable", most.String(), "must be a number of at least 1, or a share from 1% to 100%"))
	}

	return ps
}

func checkScheduling(s *state) []check.Problem {
	var ps []check.Problem

	selector := s.spec.Scheduling.NodeSelector
	for _, k := range sortedKeys(selector) {
		if errs := validation.IsQualifiedName(k); len(errs) > 0 {
			ps = append(ps, check.Invalid("spec.scheduling.nodeSelector", k, check.Because(errs)))
		}

		v := string(selector[k])
		if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
			ps = append(ps, check.Invalid("spec.scheduling.nodeSelector["+k+"]", v, check.Because(errs)))
		}
	}

	for i, t := range s.spec.Scheduling.Tolerations {
		if remedy := checkToleration(t); remedy != "" {
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf("spec.scheduling.tolerations[%d]: %s", i, remedy)})
		}
	}

	return ps
}

// checkToleration holds the rules that Kubernetes has for tolerations of taints.
func checkToleration(t corev1.Toleration) string {
	exists, equal := t.Operator == corev1.TolerationOpExists, t.Operator == corev1.TolerationOpEqual || t.Operator == ""
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}

	switch {
	case !exists && !equal:
		return fmt.Sprintf("operator: %s: must be Exists or Equal", check.Quoted(string(t.Operator)))
	case !slices.Contains(effects, t.Effect):
		return fmt.Sprintf("effect: %s: must be NoSchedule, PreferNoSchedule or NoExecute", check.Quoted(string(t.Effect)))
	case t.Key == "" && !exists:
		return `key: "": must not be empty unless the operator is Exists`
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return fmt.Sprintf("key: %s: %s", check.Quoted(t.Key), check.Because(validation.IsQualifiedName(t.Key)))
	case exists && t.Value != "":
		return fmt.Sprintf("value: %s: must be empty when the operator is Exists", check.Quoted(t.Value))
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		return fmt.Sprintf("value: %s: %s", check.Quoted(t.Value), check.Because(validation.IsValidLabelValue(t.Value)))
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return fmt.Sprintf("tolerationSeconds: %d: needs the effect NoExecute", *t.TolerationSeconds)
	default:
		return ""
	}
}

// checkReferences to other objects by name.
func checkReferences(s *state) []check.Problem {
	var ps []check.Problem

	optional := func(field, name string) {
		if name != "" {
			ps = append(ps, check.ObjectName(field, name)...)
		}
	}

	seen := map[string]bool{}

	for i, ref := range s.spec.ImagePullSecrets {
		field := fmt.Sprintf("spec.imagePullSecrets[%d].name", i)
		ps = append(ps, check.ObjectName(field, ref.Name)...)

		if seen[ref.Name] {
			ps = append(ps, check.Invalid(field, ref.Name, "is there twice: remove one"))
		}

		seen[ref.Name] = true
	}

	optional("spec.serviceAccountName", s.spec.ServiceAccountName)
	optional("spec.scheduling.runtimeClassName", s.spec.Scheduling.RuntimeClassName)
	optional("spec.scheduling.priorityClassName", s.spec.Scheduling.PriorityClassName)

	return ps
}
