// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/pods"
)

// snapshotRole is what the account of the pods that take snapshots may do. The policy capstan-snapshots restricts it to the
// snapshots of its own Database.
const snapshotRole = "capstan:snapshot"

// snapshots on schedule: the pods make them with an account of their own, so that Capstan need not run. They write how that went to a
// ConfigMap, which is composed without data.
func snapshots(d *compose.Draft, s *facts.Cluster) {
	if !s.TakesSnapshots() {
		noSnapshots(d)
		return
	}
	name := s.Called(names.SuffixSnapshots)
	d.Offer(names.SnapshotsAccount, applycorev1.ServiceAccount(name, s.Namespace).
		WithLabels(s.Labels()).
		WithAutomountServiceAccountToken(false))
	d.Offer(names.SnapshotsBinding, applyrbacv1.RoleBinding(name, s.Namespace).
		WithLabels(s.Labels()).
		WithRoleRef(applyrbacv1.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(snapshotRole)).
		WithSubjects(applyrbacv1.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(s.Namespace)))
	d.Offer(names.SnapshotsRecord, applycorev1.ConfigMap(name, s.Namespace).
		WithLabels(s.Labels()).
		WithLabels(map[string]string{names.LabelSnapshotOf: s.Name}))
	cron, _ := scheduled(s, names.SuffixSnapshots, backup.SnapshotSchedule(s), snapshotLabels(&s.Names), snapshotJobSpec(s)).(*applybatchv1.CronJobApplyConfiguration)
	d.Offer(names.Snapshots, cron.WithAnnotations(map[string]string{names.AnnotationClass: s.Spec.Backup.Snapshots.ClassName}))
}

// noSnapshots removes what takes snapshots. The snapshots stay.
func noSnapshots(d *compose.Draft) {
	for _, resource := range []string{names.Snapshots, names.SnapshotsRecord, names.SnapshotsBinding, names.SnapshotsAccount} {
		d.Remove(resource)
	}
}

// snapshotLabels of the pods that take snapshots.
func snapshotLabels(s *names.Names) map[string]string { return s.OtherPods()[names.PodsSnapshot] }

// snapshotJobSpec is one snapshot. A run that failed is followed by the next one.
func snapshotJobSpec(s *facts.Cluster) *applybatchv1.JobSpecApplyConfiguration {
	c := s.Spec.Backup.Snapshots
	pod := podOf(s, applycorev1.Container().
		WithName("snapshot").
		WithImage(s.Image.Name).
		WithCommand(pods.MemberProgram, "snapshot").
		WithArgs("--class="+c.ClassName, "--keep="+strconv.Itoa(int(c.Keep)), "--stanza="+backup.Stanza(s)).
		WithEnv(
			pods.FieldEnv("POD_NAMESPACE", "metadata.namespace"),
			pods.Env("CAPSTAN_NAME", s.Name),
			pods.Env("CAPSTAN_DATABASE", s.Base()),
			pods.Env("CAPSTAN_IDENTITY", s.Identity),
			pods.Env("CAPSTAN_VERSION", s.Data),
		).
		WithResources(pods.Resources(resource.MustParse("10m"), resource.MustParse("32Mi"), resource.MustParse("128Mi"))).
		WithVolumeMounts(pods.TokenMount()),
		pods.TokenVolume())
	pod.WithServiceAccountName(s.Called(names.SuffixSnapshots))
	return jobSpec(pod, snapshotLabels(&s.Names), 1, backup.Deadline(s))
}
