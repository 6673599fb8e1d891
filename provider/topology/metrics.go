// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// countTimeout bounds the look into the cache when metrics are scraped.
const countTimeout = 5 * time.Second

// Counts of Databases. They are made at each scrape, so that a Database that is gone is not counted any longer.
type counts struct {
	kube client.Reader
	// records of snapshots.
	records client.Reader
	log     logging.Logger

	databases *prometheus.Desc
	backups   *prometheus.Desc
	verified  *prometheus.Desc
	failed    *prometheus.Desc
	used      *prometheus.Desc
	archive   *prometheus.Desc
	gap       *prometheus.Desc
	follows   *prometheus.Desc
	second    *prometheus.Desc
	imports   *prometheus.Desc
	snapshots *prometheus.Desc
	unshot    *prometheus.Desc
	failovers *prometheus.CounterVec
}

func newCounts(kube, records client.Reader, log logging.Logger) *counts {
	return &counts{
		kube: kube, records: records, log: log,
		databases: prometheus.NewDesc("capstan_databases",
			"Databases, by namespace and the phase of their members.", []string{"namespace", "phase"}, nil),
		backups: prometheus.NewDesc("capstan_database_last_backup_timestamp_seconds",
			"When the last backup of a Database ended, in seconds since 1970, by namespace and Database.", []string{"namespace", "database"}, nil),
		verified: prometheus.NewDesc("capstan_database_last_verification_timestamp_seconds",
			"When the last verification of a backup of a Database that was passed ended, in seconds since 1970, by namespace and Database.", []string{"namespace", "database"}, nil),
		failed: prometheus.NewDesc("capstan_database_backup_verification_failed",
			"Whether the last verification of a backup of a Database failed, by namespace and Database.", []string{"namespace", "database"}, nil),
		used: prometheus.NewDesc("capstan_database_backup_volume_used_percent",
			"How much of the volume that the backups of a Database go to is used, in percent and steps of 5, by namespace and Database.", []string{"namespace", "database"}, nil),
		archive: prometheus.NewDesc("capstan_database_archive_failing",
			"Whether changes of a Database do not reach its archive, by namespace and Database.", []string{"namespace", "database"}, nil),
		gap: prometheus.NewDesc("capstan_database_archive_gap",
			"Whether changes of a Database since its last backup began are missing in its archive, by namespace and Database.", []string{"namespace", "database"}, nil),
		follows: prometheus.NewDesc("capstan_database_not_following",
			"Whether a standby Database has no leader, or does not replay what its primary archives, by namespace and Database.", []string{"namespace", "database"}, nil),
		imports: prometheus.NewDesc("capstan_database_import_behind",
			"Whether a Database is not filled by its import: changes of the source or dumps are not applied, or it is more than 1 GiB behind; 1 when it is so.", []string{"namespace", "database"}, nil),
		second: prometheus.NewDesc("capstan_database_second_primary",
			"Whether the former primary of a promoted Database still archives, by namespace and Database.", []string{"namespace", "database"}, nil),
		snapshots: prometheus.NewDesc("capstan_database_last_snapshot_timestamp_seconds",
			"When the last snapshot of a Database that is ready began, or, before the first, since when one is awaited, in seconds since 1970, by namespace and Database.", []string{"namespace", "database"}, nil),
		unshot: prometheus.NewDesc("capstan_database_snapshot_failed",
			"Whether the last run that should take a snapshot of a Database failed, by namespace and Database.", []string{"namespace", "database"}, nil),
		failovers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capstan_database_failovers_total",
			Help: "Changes of leaders of Databases that were seen, by namespace and cause.",
		}, []string{"namespace", "cause"}),
	}
}

// register the metrics.
func (c *counts) register() error {
	for _, m := range []prometheus.Collector{c, c.failovers} {
		if err := metrics.Registry.Register(m); err != nil {
			return fmt.Errorf("cannot register metrics of Databases: %w", err)
		}
	}
	return nil
}

// failover was seen.
func (c *counts) failover(namespace, cause string) {
	c.failovers.WithLabelValues(namespace, cause).Inc()
}

// Describe the count of Databases, their last backups, verifications and snapshots, and the volumes that backups go to.
func (c *counts) Describe(to chan<- *prometheus.Desc) {
	to <- c.databases
	to <- c.backups
	to <- c.verified
	to <- c.failed
	to <- c.used
	to <- c.archive
	to <- c.gap
	to <- c.follows
	to <- c.second
	to <- c.imports
	to <- c.snapshots
	to <- c.unshot
}

// Collect the count of Databases, their last backups and verifications, how full the volumes are that backups go to, and how standby
// Databases are.
func (c *counts) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	l := &v1alpha1.TopologyList{}
	if err := c.kube.List(ctx, l); err != nil {
		c.log.Info("Cannot count Databases", "error", err)
		return
	}
	type group struct{ namespace, phase string }
	n := map[group]float64{}
	for i := range l.Items {
		if t := &l.Items[i]; t.Status.AtProvider.Phase != "" {
			n[group{t.GetNamespace(), t.Status.AtProvider.Phase}]++
		}
		if at, ok := lastBackup(&l.Items[i]); ok {
			to <- prometheus.MustNewConstMetric(c.backups, prometheus.GaugeValue, at, l.Items[i].GetNamespace(), l.Items[i].Spec.ForProvider.Database)
		}
	}
	for i := range l.Items {
		if at, failed, ended := verification(&l.Items[i]); ended {
			of := []string{l.Items[i].GetNamespace(), l.Items[i].Spec.ForProvider.Database}
			to <- prometheus.MustNewConstMetric(c.verified, prometheus.GaugeValue, at, of...)
			to <- prometheus.MustNewConstMetric(c.failed, prometheus.GaugeValue, failed, of...)
		}
	}
	for i := range l.Items {
		if used, ok := volumeUsed(&l.Items[i]); ok {
			to <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, used, l.Items[i].GetNamespace(), l.Items[i].Spec.ForProvider.Database)
		}
	}
	for i := range l.Items {
		if failing, gap, ok := archived(&l.Items[i]); ok {
			of := []string{l.Items[i].GetNamespace(), l.Items[i].Spec.ForProvider.Database}
			to <- prometheus.MustNewConstMetric(c.archive, prometheus.GaugeValue, failing, of...)
			to <- prometheus.MustNewConstMetric(c.gap, prometheus.GaugeValue, gap, of...)
		}
	}
	for i := range l.Items {
		if behind, second, ok := followed(&l.Items[i]); ok {
			of := []string{l.Items[i].GetNamespace(), l.Items[i].Spec.ForProvider.Database}
			to <- prometheus.MustNewConstMetric(c.follows, prometheus.GaugeValue, behind, of...)
			to <- prometheus.MustNewConstMetric(c.second, prometheus.GaugeValue, second, of...)
		}
	}
	for i := range l.Items {
		if behind, ok := importBehind(&l.Items[i]); ok {
			to <- prometheus.MustNewConstMetric(c.imports, prometheus.GaugeValue, behind, l.Items[i].GetNamespace(), l.Items[i].Spec.ForProvider.Database)
		}
	}
	for g, v := range n {
		to <- prometheus.MustNewConstMetric(c.databases, prometheus.GaugeValue, v, g.namespace, g.phase)
	}
	// Last: what waits for a cache must not cost the others their time.
	c.collectSnapshots(ctx, to)
}

// collectSnapshots collects how the last runs went that should take snapshots.
func (c *counts) collectSnapshots(ctx context.Context, to chan<- prometheus.Metric) {
	l := &corev1.ConfigMapList{}
	if err := c.records.List(ctx, l); err != nil {
		c.log.Info("Cannot read how snapshots went", "error", err)
		return
	}
	for i := range l.Items {
		if at, failed, ok := snapshotted(&l.Items[i]); ok {
			of := []string{l.Items[i].GetNamespace(), l.Items[i].Labels[members.LabelSnapshotOf]}
			to <- prometheus.MustNewConstMetric(c.snapshots, prometheus.GaugeValue, at, of...)
			to <- prometheus.MustNewConstMetric(c.unshot, prometheus.GaugeValue, failed, of...)
		}
	}
}

// archived is whether the archive of a Database fails, and whether it has a gap since the last backup began; 1 when it is so. There is
// none before the members report their archive.
func archived(t *v1alpha1.Topology) (failing, gap float64, ok bool) {
	b := t.Status.AtProvider.Backup
	if b == nil || b.Archive == "" {
		return 0, 0, false
	}
	if b.Archive == v1alpha1.ArchiveFailing {
		failing = 1
	}
	dropped, err := time.Parse(time.RFC3339, b.Dropped)
	began, errBegan := time.Parse(time.RFC3339, b.Began)
	if err == nil && errBegan == nil && dropped.After(began) {
		gap = 1
	}
	return failing, gap, true
}

// followed is whether a standby does not follow its primary, and whether a promoted one has a second primary beside it; 1 when it is so. There
// is none of a Database that follows no other one.
func followed(t *v1alpha1.Topology) (behind, second float64, ok bool) {
	at := t.Status.AtProvider
	if at.Following == nil {
		return 0, 0, false
	}
	switch at.Following.State {
	case v1alpha1.FollowSecondPrimary:
		second = 1
	case v1alpha1.FollowBehind, v1alpha1.FollowUnreachable, v1alpha1.FollowReplaced:
		behind = 1
	case v1alpha1.FollowCaughtUp:
		if at.Leader == "" {
			behind = 1
		}
	}
	return behind, second, true
}

// verification of a Database: when the last one that was passed ended, in seconds since 1970, and whether the last one failed.
// There is none before the first.
func verification(t *v1alpha1.Topology) (at, failed float64, ended bool) {
	b := t.Status.AtProvider.Backup
	if b == nil || b.Verification.Ended == "" {
		return 0, 0, false
	}
	if b.Verification.Failure != "" {
		failed = 1
	}

	// Without any it is as long ago as can be.
	if passed, err := time.Parse(time.RFC3339, b.Verification.Passed.At); err == nil {
		at = float64(passed.Unix())
	}
	return at, failed, true
}

// lastBackup of a Database, in seconds since 1970, if it has one.
func lastBackup(t *v1alpha1.Topology) (float64, bool) {
	b := t.Status.AtProvider.Backup
	if b == nil {
		return 0, false
	}
	at, err := time.Parse(time.RFC3339, b.Ended)
	return float64(at.Unix()), err == nil
}

// volumeUsed is how much of the volume is used that the backups of a Database go to, in percent, if it is a volume and a member
// reported it.
func volumeUsed(t *v1alpha1.Topology) (float64, bool) {
	b := t.Status.AtProvider.Backup
	if b == nil || b.Repository.FileSystem == "" {
		return 0, false
	}
	return float64(b.Repository.UsedPercent), true
}
