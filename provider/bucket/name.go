// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// A namer gives a Bucket its external name: its own name, behind the prefix of its namespace on a shared server. A name that is
// set already stays; Connect checks whether it is permitted.
type namer struct {
	kube client.Client
	pool clients
}

// Initialize the external name of mg.
func (n *namer) Initialize(ctx context.Context, mg resource.Managed) error {
	cr, ok := mg.(*v1alpha1.Bucket)
	if !ok {
		return errors.New("cannot name what is not a Bucket")
	}
	if meta.GetExternalName(cr) != "" || meta.WasDeleted(cr) {
		return nil
	}
	_, tenant, err := n.pool.Client(ctx, cr)
	if err != nil {
		return connectionFailed(cr, err)
	}
	name := tenant.BucketPrefix + cr.GetName()
	if f := wellNamed(name); f != nil {
		return connectionFailed(cr, refuse(cr, f))
	}
	meta.SetExternalName(cr, name)
	if err := n.kube.Update(ctx, cr); err != nil {
		return fmt.Errorf("cannot set the external name: %w", err)
	}
	return nil
}

// connectionFailed reports a failure before there is a connection.
func connectionFailed(cr *v1alpha1.Bucket, err error) error {
	if f := (*outside.Failure)(nil); errors.As(err, &f) {
		cr.SetConditions(outside.Failed(f))
	}
	return err
}

// permitted returns why a Bucket must not have a bucket of a name, or nil.
func permitted(cr *v1alpha1.Bucket, name string, t outside.Tenant) *outside.Failure {
	if f := wellNamed(name); f != nil {
		return f
	}

	// On a shared server a namespace has the names that begin with its prefix and no others, also when the annotation says
	// otherwise, and also to observe only.
	if t.Shared && !strings.HasPrefix(name, t.BucketPrefix) {
		return &outside.Failure{
			Reason:  capstan.ReasonForbidden,
			Message: fmt.Sprintf("bucket %q is not on the ground of namespace %q: with %s its name must begin with %q", name, t.Namespace, t.Config, t.BucketPrefix),
			Remedy:  "correct the annotation crossplane.io/external-name, or use a ProviderConfig of your own",
		}
	}
	if at := cr.Status.AtProvider; at.Owned && at.BucketName != name {
		return &outside.Failure{
			Reason:  capstan.ReasonRejected,
			Message: fmt.Sprintf("the external name was changed from %q to %q, and a bucket cannot be renamed", at.BucketName, name),
			Remedy:  fmt.Sprintf("set the annotation crossplane.io/external-name back to %q, or make another Bucket", at.BucketName),
		}
	}
	return nil
}

var (
	// charset of bucket names, and that labels neither begin nor end with a dash.
	charset = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

	// reservedBegin and reservedEnd of names have a meaning for AWS and its SDK.
	reservedBegin = []string{"xn--", "sthree-", "amzn-s3-demo-"}
	reservedEnd   = []string{"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"}
)

// maxShown bounds in bytes what a message shows of a name.
const maxShown = 100

// wellNamed returns what is wrong with the name of a bucket, by the rules that all S3 servers agree on, or nil.
func wellNamed(name string) *outside.Failure {
	wrong := func(format string, a ...any) *outside.Failure {
		return &outside.Failure{
			Reason:  capstan.ReasonRejected,
			Message: fmt.Sprintf("%q cannot be the name of a bucket: ", words.Bounded(name, maxShown)) + fmt.Sprintf(format, a...),
			Remedy:  "choose another metadata.name, or set the annotation crossplane.io/external-name",
		}
	}
	if len(name) < 3 || len(name) > 63 {
		return wrong("it has %d characters and not 3 to 63", len(name))
	}
	if !charset.MatchString(name) {
		return wrong("it must consist of lower-case letters, digits, dashes and single dots, and begin and end with a letter or a digit")
	}
	if a, err := netip.ParseAddr(name); err == nil && a.Is4() {
		return wrong("it looks like an IP address")
	}
	for _, s := range reservedBegin {
		if strings.HasPrefix(name, s) {
			return wrong("it begins with %q, which is reserved", s)
		}
	}
	for _, s := range reservedEnd {
		if strings.HasSuffix(name, s) {
			return wrong("it ends with %q, which is reserved", s)
		}
	}
	return nil
}
