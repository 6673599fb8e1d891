// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// warmUpName is the name of the container that warms a replica up, and WarmUpPort the port on which it reports to the kubelet
// that it did.
const (
	warmUpName = "warm-up"
	WarmUpPort = 9901
)

// The body of its requests is an annotation of the pod, which the kubelet shows it as a file.
const (
	annotationWarmUp = "capstan.dev/warm-up-body"
	volumeWarmUp     = "warm-up"
	warmUpFolder     = "/warm-up"
	warmUpFile       = "body"
)

// Seconds that a probe may take.
//
// A server whose node is short of CPU answers late. A demo-algorithm with a 70th of the CPU share of its neighbours answered 14
// of 73 HTTP probes after more than 2 s, and none after more than 5 s. Three late answers in a row take a replica out of its
// Services, and replicas on nodes that are busy at the same time leave together. Longer than the period of the readiness probe
// would only keep a replica that hangs: it leaves within 20 s.
//
// A port accepts connections without the server's help, and did so within 0.5 s. Only a full queue of connections drops them, and
// the kernel sends them again after 1 s and 3 s.
//
// The startup probe stays short: it needs one answer among hundreds, and a longer timeout than period would stretch
// spec.probes.startupSeconds.
const (
	startupTimeout = 2
	serveTimeout   = 5
)

// warmUpTimeout is longer still, because a late answer of the sidecar says nothing about the server beside it. An answer that the
// replica is cold counts at once.
const warmUpTimeout = 10

// startupPeriod in seconds is short, so that a fast server serves at once.
const startupPeriod = 2

func startupProbe(in Inputs) *applycorev1.ProbeApplyConfiguration {
	seconds := *in.Spec.Probes.StartupSeconds
	return in.serves().
		WithTimeoutSeconds(startupTimeout).
		WithPeriodSeconds(startupPeriod).
		WithFailureThreshold((seconds + startupPeriod - 1) / startupPeriod)
}

func readinessProbe(in Inputs) *applycorev1.ProbeApplyConfiguration {
	return in.serves().WithTimeoutSeconds(serveTimeout).WithPeriodSeconds(5).WithFailureThreshold(3)
}

// livenessProbe fails after a minute without a connection. It needs no answer, independent of spec.probes: a busy server is not
// a dead one.
func livenessProbe() *applycorev1.ProbeApplyConfiguration {
	return connects().WithTimeoutSeconds(serveTimeout).WithPeriodSeconds(10).WithFailureThreshold(6)
}

// serves probes whether the container can serve.
func (in Inputs) serves() *applycorev1.ProbeApplyConfiguration {
	path := in.Spec.Probes.Path
	if path == "" {
		return connects()
	}
	if in.Spec.Protocol == v1alpha1.ProtocolGRPC {
		return in.checksHealth(strings.TrimPrefix(path, "/"))
	}
	return applycorev1.Probe().
		WithHTTPGet(applycorev1.HTTPGetAction().
			WithPort(intstr.FromString(names.PortHTTP)).
			WithPath(path).
			WithScheme(corev1.URISchemeHTTP))
}

// checksHealth asks the server for the health of a service, or for its own without a name. The kubelet needs the number of the port.
func (in Inputs) checksHealth(service string) *applycorev1.ProbeApplyConfiguration {
	return applycorev1.Probe().WithGRPC(applycorev1.GRPCAction().WithPort(*in.Spec.Port).WithService(service))
}

// connects probes whether the port accepts connections, which asks nothing of the image.
func connects() *applycorev1.ProbeApplyConfiguration {
	return applycorev1.Probe().
		WithTCPSocket(applycorev1.TCPSocketAction().WithPort(intstr.FromString(names.PortHTTP)))
}

// warmUp is the container beside the one that serves which sends it requests, and is not ready before they were answered: nor is
// the pod, and no request reaches it. It is an init container that continues to run, so that it is there before the server starts
// and ends after it.
func warmUp(in Inputs) *applycorev1.ContainerApplyConfiguration {
	w := in.Spec.Probes.WarmUp
	if w == nil {
		return nil
	}
	args := []string{
		"warm-up",
		fmt.Sprintf("--url=http://127.0.0.1:%d%s", *in.Spec.Port, w.Path),
		fmt.Sprintf("--requests=%d", *w.Requests),
		fmt.Sprintf("--listen=:%d", WarmUpPort),
	}
	var mounts []*applycorev1.VolumeMountApplyConfiguration
	if w.Body != "" {
		args = append(args, "--content-type="+w.ContentType, "--body-file="+warmUpFolder+"/"+warmUpFile)
		mounts = append(mounts, applycorev1.VolumeMount().WithName(volumeWarmUp).WithMountPath(warmUpFolder).WithReadOnly(true))
	}
	return companion(in, warmUpName, args, resource.MustParse("32Mi")).
		WithVolumeMounts(mounts...).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
		WithReadinessProbe(applycorev1.Probe().
			WithHTTPGet(applycorev1.HTTPGetAction().
				WithPort(intstr.FromInt32(WarmUpPort)).
				WithPath("/ready").
				WithScheme(corev1.URISchemeHTTP)).
			WithTimeoutSeconds(warmUpTimeout).
			WithPeriodSeconds(2).
			WithFailureThreshold(1))
}

// warmUpBody of the requests, if they have one.
func warmUpBody(in Inputs) string {
	if w := in.Spec.Probes.WarmUp; w != nil {
		return w.Body
	}
	return ""
}

func warmUpVolumes(in Inputs) []*applycorev1.VolumeApplyConfiguration {
	if warmUpBody(in) == "" {
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
