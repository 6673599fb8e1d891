// SPDX-License-Identifier: Apache-2.0

package names

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// Names of the objects within the composition. Crossplane knows an object by them, so that another name would make another
// object, and lose the first.
const (
	Access                      = "access"
	AccessCredential            = "access-credential"
	Backup                      = "backup"
	BackupBucket                = "backup-bucket"
	BackupCertificate           = "backup-certificate"
	BackupNowPrefix             = "backup-now-"
	Budget                      = "pdb"
	CA                          = "ca"
	CAIssuer                    = "ca-issuer"
	Config                      = "config"
	ConsumerPrefix              = "consumer-"
	DCS                         = "dcs"
	External                    = "external"
	HookPrefix                  = "hook-"
	Hooks                       = "hooks"
	HooksNetworkPolicy          = "hooks-networkpolicy"
	Issuer                      = "issuer"
	MemberPrefix                = "member-"
	MembersCertificate          = "members-certificate"
	Monitor                     = "monitor"
	NetworkPolicy               = "networkpolicy"
	Pods                        = "pods"
	Pooler                      = "pooler"
	PoolerBudget                = "pooler-pdb"
	PoolerCertificate           = "pooler-certificate"
	PoolerConfig                = "pooler-config"
	PoolerMonitor               = "pooler-monitor"
	PoolerNetworkPolicy         = "pooler-networkpolicy"
	PoolerServerCertificate     = "pooler-server-certificate"
	PoolerService               = "pooler-service"
	ReaderPooler                = "pooler-ro"
	ReaderPoolerService         = "pooler-ro-service"
	ReadOnly                    = "ro"
	ReadWrite                   = "rw"
	Repository                  = "repository"
	RepositoryCertificate       = "repository-certificate"
	RepositoryClientCertificate = "repository-client-certificate"
	RepositoryNetworkPolicy     = "repository-networkpolicy"
	RepositoryService           = "repository-service"
	RepositoryVolumeClaim       = "repository-volumeclaim"
	RoleBinding                 = "rolebinding"
	Rules                       = "rules"
	ServerCertificate           = "server-certificate"
	ServiceAccount              = "serviceaccount"
	SignalHookPrefix            = "signal-hook-"
	Snapshots                   = "snapshots"
	SnapshotsAccount            = "snapshots-serviceaccount"
	SnapshotsBinding            = "snapshots-rolebinding"
	SnapshotsRecord             = "snapshots-record"
	Topology                    = "topology"
	Verify                      = "verify"
	VerifyNowPrefix             = "verify-now-"
	VerifyPolicy                = "verify-networkpolicy"
	VolumeClaim                 = "volumeclaim"
)

// Suffixes of the names of objects. Secrets of backups and of poolers before the standbys begin with pg-, which no consumer does, so that none has the name of a
// consumer's Secret.
const (
	SuffixAccess           = "access"
	SuffixBackup           = "backup"
	SuffixBackupBucket     = "pg-backup-bucket"
	SuffixBackupClient     = "pg-backup"
	SuffixCA               = "ca"
	SuffixExternal         = "external"
	SuffixOfMembers        = "members"
	SuffixPods             = members.SuffixPods
	SuffixPooler           = "pooler"
	SuffixPoolerServer     = "pooler-server"
	SuffixReaderPooler     = "pooler-ro"
	SuffixReaderCert       = "pg-pooler-ro"
	SuffixReaderServerCert = "pg-pooler-ro-server"
	SuffixRO               = "ro"
	SuffixRW               = "rw"
	SuffixRepository       = "repository"
	SuffixRepositoryClient = "pg-repository"
	SuffixRepositoryServer = "pg-repository-server"
	SuffixServer           = "server"
	SuffixSigner           = "selfsigned"
	SuffixSnapshots        = "snapshots"
	SuffixVerify           = "verify"
)

// Labels and annotations of composed objects and of pods, beside the labels that the Topology selects by.
const (
	LabelName       = "app.kubernetes.io/name"
	LabelInstance   = "app.kubernetes.io/instance"
	LabelManagedBy  = "app.kubernetes.io/managed-by"
	LabelPartOf     = "app.kubernetes.io/part-of"
	LabelGeneration = "capstan.dev/generation"

	// LabelBackupOf and the next labels are on pods that take backups, verify them and run hooks, on poolers, and on the host of a
	// volume of backups and its claim. Policies select pods by them. They hold the name of the Database, and none of these pods has the
	// label of its members.
	LabelBackupOf       = "capstan.dev/backup-of"
	LabelVerificationOf = "capstan.dev/verification-of"
	LabelHookOf         = "capstan.dev/hook-of"
	LabelPooler         = engine.LabelPooler
	LabelReaderPooler   = "capstan.dev/pooler-ro"
	LabelRepositoryOf   = "capstan.dev/repository-of"
	LabelSnapshotOf     = members.LabelSnapshotOf

	// LabelCopyOf is on the pods of members that begin with the backups of another Database of their namespace, whose volume lets
	// them in by it.
	LabelCopyOf = "capstan.dev/copy-of"

	// AnnotationRevision names, on a StatefulSet, all that reaches its pod as far as the spec and the platform's settings say it.
	// Its template is pinned by it.
	AnnotationRevision = "capstan.dev/revision"

	// AnnotationVersion holds, on a StatefulSet, the major version of its data.
	AnnotationVersion = "capstan.dev/version"

	// AnnotationRestarted holds, on a StatefulSet, the revision that was started twice, because some parameters take effect only
	// after the leader has them.
	AnnotationRestarted = "capstan.dev/restarted"

	// AnnotationInputs holds, on a StatefulSet, what its revision was made of.
	AnnotationInputs = "capstan.dev/revision-of"

	// AnnotationSignal holds, on a Job that takes a backup, the Signal that asked for it.
	AnnotationSignal = "capstan.dev/signal"

	// AnnotationClass holds, on the CronJob of snapshots, their class.
	AnnotationClass = "capstan.dev/snapshot-class"

	// AnnotationStopped reports, on a StatefulSet of a hibernated Database, whether its member was the leader or a standby when it
	// was stopped.
	AnnotationStopped = "capstan.dev/stopped"

	// AnnotationSkipped holds, on the coordination object, the id of the switchover that the Database was made with.
	AnnotationSkipped = "capstan.dev/switchover-skipped"

	// AnnotationPinned holds, on the coordination object, the parameters that need a restart, as they were computed when the spec
	// requested them.
	AnnotationPinned = "capstan.dev/pinned-parameters"

	// AnnotationConfig holds, on the coordination object, the configuration that members apply at run time.
	AnnotationConfig = "config"

	// AnnotationAccepted of the first Credential is the spec that was accepted last, while clients are switched to another
	// generation by it.
	AnnotationAccepted = "capstan.dev/accepted-spec"
)

// Kinds of cert-manager, whose Issuer signs for one namespace, of the Prometheus Operator, and of CSI drivers with snapshots.
var (
	CertificateGVK    = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
	IssuerGVK         = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: KindIssuer}
	ServiceMonitorGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.ServiceMonitorsKind)
	PrometheusRuleGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind)

	VolumeSnapshotGVK      = schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}
	VolumeSnapshotClassGVK = schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotClass"}
)

// Kinds that have no constant elsewhere.
const (
	KindIssuer      = "Issuer"
	KindStatefulSet = "StatefulSet"
)

// Volumes of the pods of a Database.
const (
	VolumeData    = "data"
	VolumeWAL     = observev1alpha1.VolumeWAL
	VolumeSocket  = "run"
	VolumeTLS     = "tls"
	VolumeTmp     = "tmp"
	VolumeShared  = "shared-memory"
	VolumeConfig  = "config"
	VolumeMembers = "members"
	VolumeServer  = "server"
	VolumeAccess  = "access"
	VolumeToken   = "token"

	// VolumeCloudToken has the token that members take a role of the cloud with.
	VolumeCloudToken = "cloud-token"

	// VolumeBackup has what opens the bucket, or the volume, that backups go to, and VolumeBackupKey the key of the backups.
	VolumeBackup    = "backup"
	VolumeBackupKey = "backup-key"

	// VolumeSource and VolumeSourceKey have the same of the backup that a Database begins with.
	VolumeSource    = "source"
	VolumeSourceKey = "source-key"
	// VolumeImport has the Secret of the server or of the bucket that a Database is imported from.
	VolumeImport = "import"

	// VolumeSourceRepository has what opens the source's volume of backups, if it has one.
	VolumeSourceRepository = "source-repository"

	// VolumeHook holds the Secret of the consumer that a hook runs SQL as.
	VolumeHook = "connection"
)

// Keys of Secrets.
const (
	// KeyPassword and KeyVerifier are keys of the first Credential; Credentials of consumers have the password, too.
	KeyPassword = "password"
	KeyVerifier = "verifier"

	// KeyOfCertificate is what a certificate is checked with.
	KeyOfCertificate = "ca.crt"
)

// PortMetrics is the name of the exporter's port.
const PortMetrics = "metrics"
