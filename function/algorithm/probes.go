// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// warmUpName is the name of the container that warms a replica up, and warmUpPort
// the port on which it tells the kubelet that it did.
const (
	warmUpName = "warm-up"
	warmUpPort = 9901
)

// The body of its requests is an annotation of the pod, which the kubelet shows it
// as a file.
const (
	annotationWarmUp = "capstan.dev/warm-up-body"
	volumeWarmUp     = "warm-up"
	warmUpFolder     = "/warm-up"
	warmUpFile       = "body"
)

// Seconds that a probe may take.
//
// A server whose node is short of CPU answers late. A demo-algorithm with a 70th of the CPU
// share of its neighbours answered 14 of 73 HTTP probes after more than 2 s, and none after
// more than 5 s. Three late answers in a row take a replica out of its Services, and
// replicas on nodes that are busy at the same time leave together. Longer than the period
// of the readiness probe would only keep a replica that hangs: it leaves within 20 s.
//
// A port accepts connections without the server's help, and did so within 0.5 s. Only a full
// queue of connections drops them, and the kernel sends them again after 1 s and 3 s.
//
// The startup probe stays short: it needs one answer among hundreds, and a longer timeout
// than period would stretch spec.probes.startupSeconds.
const (
	startupTimeout = 2
	serveTimeout   = 5
)

// warmUpTimeout is longer still, because a late answer of the sidecar says nothing about the
// server beside it. An answer that the replica is cold counts at once.
const warmUpTimeout = 10

// startupPeriod in seconds is short, so that a fast server serves at once.
const startupPeriod = 2

func startupProbe(s *state) *applycorev1.ProbeApplyConfiguration {
	seconds := *s.spec.Probes.StartupSeconds

	return s.serves().
		WithTimeoutSeconds(startupTimeout).
		WithPeriodSeconds(startupPeriod).
		WithFailureThreshold((seconds + startupPeriod - 1) / startupPeriod)
}

func readinessProbe(s *state) *applycorev1.ProbeApplyConfiguration {
	return s.serves().WithTimeoutSeconds(serveTimeout).WithPeriodSeconds(5).WithFailureThreshold(3)
}

// livenessProbe gives up after a minute without a connection. It asks for no
// answer, whatever spec.probes says: a busy server is not a dead one.
func livenessProbe() *applycorev1.ProbeApplyConfiguration {
	return connects().WithTimeoutSeconds(serveTimeout).WithPeriodSeconds(10).WithFailureThreshold(6)
}

// serves probes whether the container can serve.
func (s *state) serves() *applycorev1.ProbeApplyConfiguration {
	path := s.spec.Probes.Path
	if path == "" {
		return connects()
	}

	return applycorev1.Probe().
		WithHTTPGet(applycorev1.HTTPGetAction().
			WithPort(intstr.FromString(portName)).
			WithPath(path).
			WithScheme(corev1.URISchemeHTTP))
}

// connects probes whether the port accepts connections, which asks nothing of the
// image.
func connects() *applycorev1.ProbeApplyConfiguration {
	return applycorev1.Probe().
		WithTCPSocket(applycorev1.TCPSocketAction().WithPort(intstr.FromString(portName)))
}

// warmUp is the container beside the one that serves which sends it requests, and
// is not ready before they were answered: nor is the pod, and callers do not reach
// it. It is an init container that goes on running, so that it is there before the
// server starts and ends after it.
func warmUp(s *state) *applycorev1.ContainerApplyConfiguration {
	w := s.spec.Probes.WarmUp
	if w == nil {
		return nil
	}

	args := []string{
		"warm-up",
		fmt.Sprintf("--url=http://127.0.0.1:%d%s", *s.spec.Port, w.Path),
		fmt.Sprintf("--requests=%d", *w.Requests),
		fmt.Sprintf("--listen=:%d", warmUpPort),
	}

	var mounts []*applycorev1.VolumeMountApplyConfiguration

	if w.Body != "" {
		args = append(args, "--content-type="+w.ContentType, "--body-file="+warmUpFolder+"/"+warmUpFile)
		mounts = append(mounts, applycorev1.VolumeMount().WithName(volumeWarmUp).WithMountPath(warmUpFolder).WithReadOnly(true))
	}

	return companion(s, warmUpName, args, resource.MustParse("32Mi")).
		WithVolumeMounts(mounts...).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
		WithReadinessProbe(applycorev1.Probe().
			WithHTTPGet(applycorev1.HTTPGetAction().
				WithPort(intstr.FromInt32(warmUpPort)).
				WithPath("/ready").
				WithScheme(corev1.URISchemeHTTP)).
			WithTimeoutSeconds(warmUpTimeout).
			WithPeriodSeconds(2).
			WithFailureThreshold(1))
}

// warmUpBody of the requests, if they have one.
func warmUpBody(s *state) string {
	if w := s.spec.Probes.WarmUp; w != nil {
		return w.Body
	}

	return ""
}

func warmUpAnnotations(s *state) map[string]string {
	body := warmUpBody(s)
	if body == "" {
		return nil
	}

	return map[string]string{annotationWarmUp: body}
}

func warmUpVolumes(s *state) []*applycorev1.VolumeApplyConfiguration {
	if warmUpBody(s) == "" {
		return nil
	}

	return []*applycorev1.VolumeApplyConfiguration{applycorev1.Volume().
		WithName(volumeWarmUp).
		WithDownwardAPI(applycorev1.DownwardAPIVolumeSource().
			WithItems(applycorev1.DownwardAPIVolumeFile().
				WithPath(warmUpFile).
				WithFieldRef(applycorev1.ObjectFieldSelector().
					WithFieldPath("metadata.annotations['" + annotationWarmUp + "']"))))}
}
