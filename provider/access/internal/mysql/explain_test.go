// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
)

func TestExplain(t *testing.T) {
	said := func(number uint16, message string) error {
		return fmt.Errorf("cannot do it: %w", &mysql.MySQLError{Number: number, Message: message})
	}
	type result struct {
		Reason  xpv2.ConditionReason
		Text    string
		Refused bool
	}
	cases := map[string]struct {
		reason string
		err    error
		want   *result
	}{
		"WrongPassword": {
			reason: "The password of the provider is another one.", err: said(1045, "Access denied for user 'capstan'@'10.1.2.3' (using password: YES)"),
			want: &result{apis.ReasonCredentialsRefused, "the server does not take the password of the account: see that server.passwordSecretRef holds the one that the server has", true},
		},
		"NoDatabase": {reason: "It is made again.", err: said(1049, "Unknown database 'orders'"), want: &result{apis.ReasonNotFound, "there is no such database: nothing to do: it is made again", false}},
		"ReadOnly": {
			reason: "A member that does not lead.", err: said(1290, "The MySQL server is running with the --super-read-only option so it cannot execute this statement"),
			want: &result{apis.ReasonUnreachable, "the server follows another one and takes no writes: nothing to do: the provider tries again", false},
		},
		"NoMajority": {
			reason: "A leader that cannot commit.", err: said(3100, "Error on observer while running replication hook 'before_commit'."),
			want: &result{apis.ReasonUnreachable, "the server follows another one and takes no writes: nothing to do: the provider tries again", false},
		},
		"RolledBack": {
			reason: "Another member was faster.", err: said(3101, "Plugin instructed the server to rollback the current transaction."),
			want: &result{apis.ReasonUnreachable, "the server follows another one and takes no writes: nothing to do: the provider tries again", false},
		},
		"Offline": {
			reason: "A fenced member.", err: said(3032, "The server is currently in offline mode"),
			want: &result{apis.ReasonUnreachable, "the server lets no clients in at the moment: nothing to do: the provider tries again", false},
		},
		"Rights": {
			reason: "What the server says names what is lacking.", err: said(1227, "Access denied; you need (at least one of) the CREATE USER privilege(s) for this operation"),
			want: &result{
				apis.ReasonForbidden, "the server does not let the account do this (Access denied; you need (at least one of) the CREATE USER privilege(s) for this operation): " + rights, true,
			},
		},
		"Full":    {reason: "It says nothing of a statement.", err: said(1040, "Too many connections"), want: &result{apis.ReasonThrottled, "the server has no connection left: raise max_connections, or have clients use fewer", false}},
		"Unknown": {reason: "What is not known is told.", err: said(1064, "You have an error in your SQL syntax"), want: &result{apis.ReasonRejected, "the server refuses with code 1064: You have an error in your SQL syntax: see the server's logs", true}},
		"Ended":   {reason: "A connection that ended.", err: driver.ErrBadConn, want: &result{apis.ReasonUnreachable, "the server is stopping, or ended the connection: nothing to do: the provider tries again", false}},
		"NoTLS":   {reason: "Nothing is sent in the clear.", err: mysql.ErrNoTLS, want: &result{apis.ReasonTLSFailed, "the server does not speak TLS: give it a certificate", false}},
		"OldMethod": {
			reason: "A password goes by no other method.", err: mysql.ErrNativePassword,
			want: &result{apis.ReasonForbidden, "the account does not log in with caching_sha2_password: make it one that does", false},
		},
		"Others": {reason: "What is below the protocol others explain.", err: context.DeadlineExceeded},
		"None":   {reason: "Nothing is explained."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *result
			if f := Explain(tc.err); f != nil {
				got = &result{f.Reason, f.Message + ": " + f.Remedy, (&Server{}).Refused(tc.err) != nil}
				if !errors.Is(f, tc.err) {
					t.Errorf("\n%s\nExplain(...): want the cause to be kept, got %v", tc.reason, f.Cause)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nExplain(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
