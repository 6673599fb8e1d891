// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/network"
	"github.com/capstan-dev/capstan/function/database/pods"
	"github.com/capstan-dev/capstan/function/database/repository"
)

// verifyKept is how long a pod that has verified is kept for its log. Its volume, from which the data is removed before the
// pod ends, is kept as long.
const verifyKept = time.Hour

// verify backups on schedule, the first one at once, and on request.
func verify(d *compose.Draft, s *facts.Cluster) {
	if !backup.Verifies(s) {
		noVerify(d, s)
		return
	}
	d.Offer(names.VerifyPolicy, verifyPolicy(s))
	d.Offer(names.Verify, scheduled(s, names.SuffixVerify, backup.VerifySchedule(s), verifyLabels(&s.Names),
		verifyJobSpec(s, "").WithTTLSecondsAfterFinished(int32(verifyKept.Seconds()))))
	verifyNow(d, s)
}

// noVerify removes everything that verifies.
func noVerify(d *compose.Draft, s *facts.Cluster) {
	d.Remove(names.Verify)
	d.Remove(names.VerifyPolicy)
	removeOthers(d, s, names.VerifyNowPrefix, map[string]bool{})
}

// verifyNow composes a Job for the requested id, and one for the first backup, until the leader reports the result. The report
// outlasts the Job, so that no verification begins twice. A failed Job is kept for its log while its id stays.
func verifyNow(d *compose.Draft, s *facts.Cluster) {
	backups, ids := s.BackupReport(), verifyIDs(s)
	for _, name := range compose.SortedKeys(ids) {
		switch {
		case begun(s, name):
			d.Keep(names.VerifyNowPrefix + name)
		case s.Leads() && backups.Asked && backups.Label != "" && backups.Verification.Asked:
			d.Offer(names.VerifyNowPrefix+name, once(s, s.Called(names.SuffixVerify+"-"+name), verifyJobSpec(s, ids[name])))
		}
	}
	removeOthers(d, s, names.VerifyNowPrefix, ids)
}

// verifyIDs are the ids of the verifications that should have Jobs, by the Jobs' names. The first has no id: the end of any
// verification is its memory.
func verifyIDs(s *facts.Cluster) map[string]string {
	v := s.BackupReport().Verification
	ids := map[string]string{}
	if v.Ended == "" && (v.Began == "" || begun(s, backup.FirstVerify)) || v.Failure != "" && begun(s, backup.FirstVerify) {
		ids[backup.FirstVerify] = ""
	}
	if id := s.Spec.Backup.Verify.Now; id != "" && (v.ID != id || v.Failure != "" && begun(s, backup.NowName(id))) {
		ids[backup.NowName(id)] = id
	}
	return ids
}

// begun reports whether there is a Job of a name.
func begun(s *facts.Cluster, name string) bool { return s.Observed[names.VerifyNowPrefix+name] != nil }

// verifyLabels of the pods that verify. Members and backup pods have other labels, and members admit backup pods.
func verifyLabels(s *names.Names) map[string]string {
	return s.OtherPods()[names.PodsVerify]
}

// verifyJobSpec is one verification.
func verifyJobSpec(s *facts.Cluster, id string) *applybatchv1.JobSpecApplyConfiguration {
	command := []string{pods.MemberProgram, "verify"}
	if id != "" {
		command = append(command, "--id="+id)
	}
	if limit, longer := backup.VerifyLimit(s); longer {
		command = append(command, "--limit="+limit.String())
	}
	pod := podOf(s, applycorev1.Container().
		WithName("verify").
		WithImage(repository.ReaderImage(s)).
		WithCommand(command...).
		WithResources(verifyResources(s)).
		WithVolumeMounts(
			pods.Mount(names.VolumeTmp, "/tmp", false),
			pods.Mount(names.VolumeConfig, "/etc/capstan/config", true),
			pods.Mount(names.VolumeBackup, "/etc/capstan/backup", true)),
		pods.EmptyVolume(names.VolumeTmp, resource.MustParse("256Mi"), ""),
		pods.ConfigVolume(names.VolumeConfig, s.OwnMembers()),
		pods.SecretVolume(names.VolumeBackup, backup.BucketSecret(s)))
	withVolume(s, pod, verifyLabels(&s.Names))
	pods.WithKey(s, pod)
	pods.WithRole(s, pod)
	// A backup that fails once fails again. A pod that had to make room does not count.
	return jobSpec(pod, verifyLabels(&s.Names), 0, backup.VerifyDeadline(s)).WithPodFailurePolicy(unlessEvicted())
}

// verifyPolicy lets no client reach pods that verify, and these pods only name servers and the bucket: its namespace when it is in
// the cluster, its port when it is not, or the host of the volume. For a bucket of spec.backup.to it allows all of TCP, because
// only the bucket's Secret has the address.
func verifyPolicy(s *facts.Cluster) compose.Named {
	bucket, anyPort := applynetworkingv1.NetworkPolicyEgressRule(), applynetworkingv1.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP)
	switch namespace, port := bucketPlace(s); {
	case backup.IsOnVolume(s):
		bucket = network.ToRepository(&s.Names)
	case namespace != "":
		// The pods behind a Service may have another port.
		bucket = network.To(applynetworkingv1.NetworkPolicyPeer().WithNamespaceSelector(compose.Namespace(namespace))).WithPorts(anyPort)
	case port > 0:
		bucket.WithPorts(network.Port(corev1.ProtocolTCP, port))
	default:
		bucket.WithPorts(anyPort)
	}
	return network.NewPolicy(&s.Names, names.SuffixVerify, map[string]string{names.LabelVerificationOf: s.Name}, nil, network.ToNameServers(), bucket)
}

// bucketPlace is the namespace of the server of the Database's own bucket when it is a Service of this cluster, or else its port;
// nothing while it is not known.
func bucketPlace(s *facts.Cluster) (namespace string, port int32) {
	o := s.Observed[names.BackupBucket]
	if o == nil || s.Spec.Backup.To != nil {
		return "", 0
	}
	u, err := url.Parse(compose.Text(o.Map(), "status", "atProvider", "endpoint"))
	if err != nil || u.Host == "" {
		return "", 0
	}
	if parts := strings.Split(u.Hostname(), "."); len(parts) >= 3 && parts[2] == "svc" {
		return parts[1], 0
	}
	n, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		return "", 443
	}
	return "", int32(n)
}
