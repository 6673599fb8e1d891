// SPDX-License-Identifier: Apache-2.0

package pods

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// backupVolumes of a member. A member starts without them: the bucket may come later, and a Database does not depend on it.
func backupVolumes(s *facts.Cluster) []*applycorev1.VolumeApplyConfiguration {
	var volumes []*applycorev1.VolumeApplyConfiguration
	if backup.Archives(s) {
		volumes = append(volumes, SecretVolume(names.VolumeBackup, backup.BucketSecret(s)))
		if k := backup.Key(s); k.Encrypted() {
			volumes = append(volumes, keyVolume(k, names.VolumeBackupKey))
		}
	}
	if name := backup.SourceSecret(s); name != "" {
		volumes = append(volumes, SecretVolume(names.VolumeSource, name))
		if k := backup.SourceKey(s); k.Encrypted() {
			volumes = append(volumes, keyVolume(k, names.VolumeSourceKey))
		}
	}
	if name := backup.SourceDatabase(s); name != "" {
		volumes = append(volumes, SecretVolume(names.VolumeSourceRepository, name+"-"+names.SuffixRepositoryClient))
	}
	// It stays after the import has ended, or members would be restarted.
	switch d := s.Dumps(); {
	case d != nil:
		volumes = append(volumes, SecretVolume(names.VolumeImport, d.ConnectionSecretRef.Name))
	case s.Imports():
		volumes = append(volumes, SecretVolume(names.VolumeImport, s.Spec.From.Server.CredentialsSecretRef.Name))
	}
	for _, v := range volumes {
		v.Secret.WithOptional(true)
	}
	return volumes
}

// backupMounts of the container of the server.
func backupMounts(s *facts.Cluster) []*applycorev1.VolumeMountApplyConfiguration {
	volumes := backupVolumes(s)
	mounts := make([]*applycorev1.VolumeMountApplyConfiguration, 0, len(volumes))
	for _, v := range volumes {
		mounts = append(mounts, Mount(*v.Name, "/etc/capstan/"+*v.Name, true))
	}
	return mounts
}

// keyFile is the name of the key where it is mounted. Its Secret may use another name.
const keyFile = "passphrase"

// keyVolume with the key alone. The Secret may have more.
func keyVolume(k facts.KeyRef, name string) *applycorev1.VolumeApplyConfiguration {
	v := SecretVolume(name, k.Secret)
	v.Secret.WithItems(applycorev1.KeyToPath().WithKey(k.Key).WithPath(keyFile))
	return v
}

// WithKey mounts the key into a pod that works with backups. The pod waits until its Secret exists.
func WithKey(s *facts.Cluster, pod *applycorev1.PodSpecApplyConfiguration) {
	k := backup.Key(s)
	if !k.Encrypted() {
		return
	}
	pod.WithVolumes(keyVolume(k, names.VolumeBackupKey))
	pod.Containers[0].WithVolumeMounts(Mount(names.VolumeBackupKey, "/etc/capstan/"+names.VolumeBackupKey, true))
}

const (
	// cloudToken is the folder of the token that a role is taken with.
	cloudToken = "/etc/capstan/" + names.VolumeCloudToken
	// audienceOfSTS is who the token is for. No other service takes it, and neither does the API server.
	audienceOfSTS = "sts.amazonaws.com"
)

// WithRole lets the first container of a pod open buckets as the role of the Database, if it has one: with a token of the members'
// account, in the variables that clients of AWS know. Kubernetes renews the token.
func WithRole(s *facts.Cluster, pod *applycorev1.PodSpecApplyConfiguration) {
	role := s.Role()
	if role == "" {
		return
	}
	const file = "token"
	pod.WithServiceAccountName(s.OwnMembers()).WithVolumes(applycorev1.Volume().WithName(names.VolumeCloudToken).WithProjected(
		applycorev1.ProjectedVolumeSource().WithDefaultMode(0o440).WithSources(applycorev1.VolumeProjection().WithServiceAccountToken(
			applycorev1.ServiceAccountTokenProjection().WithAudience(audienceOfSTS).WithExpirationSeconds(3600).WithPath(file)))))
	pod.Containers[0].WithEnv(Env("AWS_ROLE_ARN", role), Env("AWS_WEB_IDENTITY_TOKEN_FILE", cloudToken+"/"+file)).
		WithVolumeMounts(Mount(names.VolumeCloudToken, cloudToken, true))
}

// MemberProgram is the program in the image of the members.
const MemberProgram = engine.Program
