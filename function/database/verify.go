// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// Names of the objects of verifications within the composition.
const (
	nameVerify          = "verify"
	nameVerifyPolicy    = "verify-networkpolicy"
	nameVerifyNowPrefix = "verify-now-"

	// firstVerify names the verification that begins as soon as there is a backup.
	firstVerify = "first"
)

const (
	// verifyDeadline is how long a verification may take. The program in its pod ends half an hour before by itself, to tell why.
	verifyDeadline = 12 * time.Hour

	// verifyKept is how long a pod that has verified is kept for its log. Its volume, from which the data is removed before the
	// pod ends, is kept as long.
	verifyKept = time.Hour

	labelVerificationOf = "capstan.dev/verification-of"
)

// verifies reports whether backups are verified.
func (s *cluster) verifies() bool { return s.takesBackups() && s.spec.Backup.Verify != nil }

// verifyFile of this Database, or nil.
func (s *cluster) verifyFile() *engine.Verify {
	if !s.verifies() {
		return nil
	}
	f := &engine.Verify{Preload: s.preload()}
	for _, a := range s.spec.Backup.Verify.Assertions {
		f.Assertions = append(f.Assertions, engine.Assertion(a))
	}
	if d := s.spec.Backup.Verify.MaxRestoreTime; d != nil {
		f.MaxRestoreSeconds = max(1, int64(d.Seconds()))
	}
	return f
}

// checkVerify holds what the schema cannot say of verifications.
func (s *cluster) checkVerify() []check.Problem {
	if s.spec.Backup == nil || s.spec.Backup.Verify == nil {
		return nil
	}
	v := s.spec.Backup.Verify
	ps := s.checkSchedule("spec.backup.verify.schedule", v.Schedule)
	for i, a := range v.Assertions {
		if !slices.ContainsFunc(s.spec.Databases, func(d v1alpha1.LogicalDatabase) bool { return d.Name == a.Database }) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.backup.verify.assertions[%d].database", i), a.Database, "must be one of spec.databases"))
		}
	}
	return ps
}

// verifySchedule is the one that is asked for, or once a week in the hours after those in which backups are taken.
func (s *cluster) verifySchedule() string {
	if text := s.spec.Backup.Verify.Schedule; text != "" {
		return text
	}
	n := s.hashed()
	minute := n % (hoursOfNight * 60)
	return fmt.Sprintf("%d %d * * %d", minute%60, hoursOfNight+minute/60, n/(hoursOfNight*60)%7)
}

// verify backups on schedule, the first one at once, and whenever it is asked for.
func verify(d *compose.Draft, s *cluster) {
	if !s.verifies() {
		noVerify(d, s)
		return
	}
	d.Offer(nameVerifyPolicy, s.verifyPolicy())
	d.Offer(nameVerify, applybatchv1.CronJob(s.called(suffixVerify), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applybatchv1.CronJobSpec().
			WithSchedule(s.verifySchedule()).
			WithTimeZone("Etc/UTC").
			// Nobody reads what it tells while members are stopped.
			WithSuspend(s.hibernated()).
			WithConcurrencyPolicy(batchv1.ForbidConcurrent).
			WithStartingDeadlineSeconds(3600).
			WithSuccessfulJobsHistoryLimit(1).
			WithFailedJobsHistoryLimit(1).
			WithJobTemplate(applybatchv1.JobTemplateSpec().
				WithLabels(s.verifyLabels()).
				WithSpec(s.verifyJobSpec("").WithTTLSecondsAfterFinished(int32(verifyKept.Seconds()))))))
	verifyNow(d, s)
}

// noVerify lets all that verifies go.
func noVerify(d *compose.Draft, s *cluster) {
	for resource := range s.Observed {
		if resource == nameVerify || resource == nameVerifyPolicy || strings.HasPrefix(resource, nameVerifyNowPrefix) {
			d.Remove(resource)
		}
	}
}

// verifyNow composes a Job for the id that is asked for, and one for the first backup, until the leader tells what it came to.
// That outlasts the Job, so that none begins twice. The Job of one that failed is kept for its log while its id stays.
func verifyNow(d *compose.Draft, s *cluster) {
	told, ids := s.backupReport(), s.verifyIDs()
	for _, name := range compose.SortedKeys(ids) {
		switch {
		case s.begun(name):
			d.Keep(nameVerifyNowPrefix + name)
		case s.leads() && told.Asked && told.Label != "" && told.Verification.Asked:
			d.Offer(nameVerifyNowPrefix+name, applybatchv1.Job(s.called(suffixVerify+"-"+name), s.namespace).
				WithLabels(s.labels()).
				WithSpec(s.verifyJobSpec(ids[name])))
		}
	}
	for resource := range s.Observed {
		name, ok := strings.CutPrefix(resource, nameVerifyNowPrefix)
		if _, wanted := ids[name]; ok && !wanted {
			d.Remove(resource)
		}
	}
}

// verifyIDs are the ids of the verifications that there should be Jobs for, by the Jobs' names. The first has no id: that one
// ended is its memory.
func (s *cluster) verifyIDs() map[string]string {
	v := s.backupReport().Verification
	ids := map[string]string{}
	if v.Ended == "" && (v.Began == "" || s.begun(firstVerify)) || v.Failure != "" && s.begun(firstVerify) {
		ids[firstVerify] = ""
	}
	if id := s.spec.Backup.Verify.Now; id != "" && (v.ID != id || v.Failure != "" && s.begun(nowName(id))) {
		ids[nowName(id)] = id
	}
	return ids
}

// begun reports whether there is a Job of a name.
func (s *cluster) begun(name string) bool { return s.Observed[nameVerifyNowPrefix+name] != nil }

// verifyLabels of the pods that verify. They are neither those of members nor of those who take backups, whom members let in.
func (s *names) verifyLabels() map[string]string {
	return map[string]string{
		labelName:           s.traits.App + "-verify",
		labelInstance:       s.name,
		labelManagedBy:      "capstan",
		labelVerificationOf: s.name,
	}
}

// verifyJobSpec is one verification. It restores to a volume of the members' storage class and size, which goes with its pod: on
// the node's own disk it would take the room of other pods, and an eviction would end it.
func (s *cluster) verifyJobSpec(id string) *applybatchv1.JobSpecApplyConfiguration {
	command := []string{memberProgram, "verify"}
	if id != "" {
		command = append(command, "--id="+id)
	}
	claim := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(applycorev1.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: s.sizes.created}))
	if c := s.size.storageClassName; c != "" {
		claim.WithStorageClassName(c)
	}
	pod := s.hardenedPod().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithContainers(hardened(applycorev1.Container().
			WithName("verify").
			WithImage(s.readerImage()).
			WithCommand(command...).
			WithResources(applycorev1.ResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("512Mi")}).
				WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")})).
			WithVolumeMounts(
				mount(volumeTmp, "/tmp", false),
				mount(volumeData, "/data", false),
				mount(volumeConfig, "/etc/capstan/config", true),
				mount(volumeBackup, "/etc/capstan/backup", true)))).
		WithVolumes(
			emptyVolume(volumeTmp, resource.MustParse("256Mi"), ""),
			applycorev1.Volume().WithName(volumeData).WithEphemeral(applycorev1.EphemeralVolumeSource().
				WithVolumeClaimTemplate(applycorev1.PersistentVolumeClaimTemplate().
					WithLabels(s.verifyLabels()).
					WithSpec(claim))),
			applycorev1.Volume().WithName(volumeConfig).
				WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(s.ownMembers())),
			secretVolume(volumeBackup, s.bucketSecret()))
	pod.SecurityContext.WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	s.withKey(pod)
	return applybatchv1.JobSpec().
		// What is wrong with a backup is wrong the next time, too. A pod that had to make room does not count.
		WithBackoffLimit(0).
		WithPodFailurePolicy(applybatchv1.PodFailurePolicy().WithRules(applybatchv1.PodFailurePolicyRule().
			WithAction(batchv1.PodFailurePolicyActionIgnore).
			WithOnPodConditions(applybatchv1.PodFailurePolicyOnPodConditionsPattern().
				WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)))).
		WithActiveDeadlineSeconds(int64(verifyDeadline.Seconds())).
		WithTemplate(applycorev1.PodTemplateSpec().WithLabels(s.verifyLabels()).WithSpec(pod))
}

// verifyPolicy lets nobody reach those who verify, and them only names and the bucket: its namespace when it is in the cluster,
// its port when it is not, or the host of the volume. Of a bucket of spec.backup.to that is all of TCP: only its Secret says
// where it is.
func (s *cluster) verifyPolicy() compose.Named {
	bucket := applynetworkingv1.NetworkPolicyEgressRule()
	switch namespace, port := s.bucketPlace(); {
	case s.isOnVolume():
		bucket = s.toRepository()
	case namespace != "":
		// The port of a Service is not that of its pods.
		bucket.WithTo(applynetworkingv1.NetworkPolicyPeer().WithNamespaceSelector(compose.Namespace(namespace))).
			WithPorts(applynetworkingv1.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP))
	case port > 0:
		bucket.WithPorts(at(corev1.ProtocolTCP, port))
	default:
		bucket.WithPorts(applynetworkingv1.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP))
	}
	return applynetworkingv1.NetworkPolicy(s.called(suffixVerify), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelVerificationOf: s.name})).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithEgress(toNameServers(), bucket))
}

// bucketPlace is the namespace of the server of the Database's own bucket when it is a Service of this cluster, or else its port;
// nothing while it is not known.
func (s *cluster) bucketPlace() (namespace string, port int32) {
	o := s.Observed[nameBackupBucket]
	if o == nil || s.spec.Backup.To != nil {
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
