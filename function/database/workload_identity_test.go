// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

const backupRole = "arn:aws:iam::123456789012:role/shop/backups"

// withRole is a Database with a role of the cloud, and more fields.
func withRole(fields string) string {
	return `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, workloadIdentity: {roleArn: "` + backupRole + `"}` + fields + `}`
}

// identityOf the pods of an object: their account, and what their containers have to take a role with.
func identityOf(t *testing.T, object any) map[string]any {
	t.Helper()
	pod := compose.Map(templateOf(t, object), "spec")
	out := map[string]any{}
	token := facts.Entry(compose.List(pod, "volumes"), names.VolumeCloudToken)
	if token != nil {
		out["account"], out["token"] = pod["serviceAccountName"], compose.Map(token, "projected")["sources"]
	}
	if compose.Text(pod, "automountServiceAccountToken") != "" || pod["automountServiceAccountToken"] != false {
		out["automount"] = pod["automountServiceAccountToken"]
	}
	for _, c := range compose.List(pod, "containers") {
		c := c.(map[string]any)
		name := compose.Text(c, "name") + " "
		for _, v := range []string{"AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
			if e := facts.Entry(compose.List(c, "env"), v); e != nil {
				out[name+v] = e["value"]
			}
		}
		if m := facts.Entry(compose.List(c, "volumeMounts"), names.VolumeCloudToken); m != nil {
			out[name+"mount"], out[name+"readOnly"] = m["mountPath"], m["readOnly"]
		}
	}
	return out
}

// identified pods of an account, whose container has the role.
func identified(account, container string) map[string]any {
	return map[string]any{
		"account": account, "token": []any{map[string]any{"serviceAccountToken": map[string]any{
			"audience": "sts.amazonaws.com", "expirationSeconds": 3600.0, "path": "token",
		}}},
		container + " AWS_ROLE_ARN": backupRole, container + " AWS_WEB_IDENTITY_TOKEN_FILE": "/etc/capstan/cloud-token/token",
		container + " mount": "/etc/capstan/cloud-token", container + " readOnly": true,
	}
}

// TestWorkloadIdentity: all that open the bucket have the role and a token for it, which no other service takes, and nothing else has.
func TestWorkloadIdentity(t *testing.T) {
	w := running(t, withRole(`, backup: {verify: {}}, pooler: {replicas: 2}`))
	w.backup = wellBackedUp()
	w.backup.Verification.Asked = true
	w.react()
	p := w.pass()
	with := map[string]string{
		names.MemberPrefix + "a": "postgres", names.MemberPrefix + "b": "postgres", names.MemberPrefix + "c": "postgres",
		names.Backup: "backup", names.Verify: "verify", names.VerifyNowPrefix + backup.FirstVerify: "verify",
	}
	for name := range p.Objects {
		o := w.request.Observed[name]
		if o == nil || templateOf(t, o.Map()) == nil {
			continue
		}
		want := map[string]any{}
		if container := with[name]; container != "" {
			want = identified("orders-db-members", container)
		}
		delete(with, name)
		if diff := cmp.Diff(want, identityOf(t, o.Map())); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
	if len(with) > 0 {
		t.Errorf("there are no pods of %v", with)
	}
}

// TestWorkloadIdentityOfACopy: one that has no backups of its own reads those of its source with its role.
func TestWorkloadIdentityOfACopy(t *testing.T) {
	w := running(t, withRole(`, from: {database: {name: other}}`))
	if diff := cmp.Diff(identified("orders-db-members", "postgres"), identityOf(t, w.request.Observed[names.MemberPrefix+"a"].Map())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWorkloadIdentityChanges restart members one by one, also while the archive fails: a role may be what it lacks.
func TestWorkloadIdentityChanges(t *testing.T) {
	other := strings.Replace(withRole(`, backup: {}`), "shop/backups", "shop/other", 1)
	for name, tc := range map[string]struct{ reason, from, to string }{
		"Added":   {"A Secret without keys needs a role.", withBackup(`{}`), withRole(`, backup: {}`)},
		"Another": {"Roles are renamed.", other, withRole(`, backup: {}`)},
		"Removed": {"There are keys again.", withRole(`, backup: {}`), withBackup(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, tc.from)
			w.backup = wellBackedUp()
			w.backup.Archive, w.backup.Message = observev1alpha1.ArchiveFailing, "no keys"
			w.react()
			before := w.revisions()
			w.edit(tc.to)
			change := told(t, w.plan()).Change
			want := []v1alpha1.ChangeEffect{{Field: "spec.workloadIdentity", Effect: v1alpha1.EffectRestart, Cause: v1alpha1.ChangedBySpec}}
			if change == nil {
				t.Fatal("no change is told")
			}
			if diff := cmp.Diff(want, change.Effects); diff != "" {
				t.Errorf("%s effects: -want, +got:\n%s", tc.reason, diff)
			}
			for range 14 {
				w.pass()
			}
			for letter, now := range w.revisions() {
				if now == before[letter] {
					t.Errorf("%s member %s was not restarted", tc.reason, letter)
				}
			}
		})
	}
}

// TestWorkloadIdentityIsRefused where an engine cannot take a role.
func TestWorkloadIdentityIsRefused(t *testing.T) {
	w := running(t, group)
	w.edit(`{engine: mysql, version: "9.7", replicas: 3, storage: 50Gi, workloadIdentity: {roleArn: "` + backupRole + `"}}`)
	status, reason, message := condition(w.plan(), string(v1alpha1.TypeAccepted))
	if status != "False" || reason != string(v1alpha1.ReasonUnsupportedByEngine) || !strings.Contains(message, "workloadCredentials") || !strings.Contains(message, backupRole) {
		t.Errorf("Accepted is %s, %s: %s", status, reason, message)
	}
}
