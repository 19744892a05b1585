package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ErrTaken says that a lab of that name is somebody else's.
var ErrTaken = errors.New("in use by somebody else")

const (
	// LearnerLabel is on everything that a learner's lab makes; its value is the learner's name.
	LearnerLabel = "crdlab.dev/learner"
	// OwnerAnnotation is on the namespace of a lab that others could reach; its value is the id of whose it is.
	OwnerAnnotation = "crdlab.dev/owner"
)

// idName is the file in the state folder that holds this user's id.
const idName = "id"

// OwnerID is the id by which this user's labs are known on clusters that others use too. It is made when it is first asked
// for, and stays in the state folder.
func OwnerID() (string, error) {
	dir, err := StateDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, idName)
	id, err := readID(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeID(dir, path); err == nil {
			id, err = readID(path)
		}
	}
	if err != nil {
		return "", fmt.Errorf("the id by which others tell your lab from theirs: %w; it is kept in %s: make that a file that can be written, or set XDG_STATE_HOME", err, path)
	}
	return id, nil
}

func readID(path string) (string, error) {
	data, err := os.ReadFile(path)
	id := strings.TrimSpace(string(data))
	if err == nil && id == "" {
		err = errors.New("the file is empty")
	}
	return id, err
}

// makeID puts a whole file there at once, unless another process was faster: then that one's holds.
func makeID(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".id-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.WriteString(rand.Text() + "\n")
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Labels are those of everything that the lab makes.
func (s Scope) Labels() map[string]string {
	labels := map[string]string{ManagedBy: Maker}
	if s.Learner != "" {
		labels[LearnerLabel] = s.Learner
	}
	return labels
}

// Claim makes a scope its owner's, by its namespace, before anything else is done there. It is ErrForeign where a CRD or a
// namespace of that name is there and not the lab's, and ErrTaken where it is another's lab; then nothing was changed. A
// scope without an owner is not claimed: nobody else gets at its cluster.
func Claim(ctx context.Context, c Cluster, s Scope) error {
	if s.Owner == "" {
		return nil
	}
	if err := CheckClaim(ctx, c, s); err != nil {
		return err
	}
	return MakeNamespace(ctx, c.Config(), s)
}

// CheckClaim says whether a scope could be claimed, and only reads.
func CheckClaim(ctx context.Context, c Cluster, s Scope) error {
	if s.Owner == "" {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	there, err := client.CoreV1().Namespaces().Get(ctx, s.Namespace, metav1.GetOptions{})
	if err == nil {
		err = s.owns(there)
	} else if apierrors.IsNotFound(err) {
		err = nil
	} else {
		err = fmt.Errorf("look for the namespace %s: %w", s.Namespace, err)
	}
	if err != nil {
		return err
	}
	return s.checkCRD(ctx, c)
}

func (s Scope) checkCRD(ctx context.Context, c Cluster) error {
	definitions, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	crd, err := definitions.CustomResourceDefinitions().Get(ctx, s.Resource.String(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look for the CRD %s: %w", s.Resource, err)
	case crd.Labels[ManagedBy] != Maker:
		return fmt.Errorf("the CRD %s has no label %s=%s: %w; give --learner NAME, which has an API group of its own, or remove the CRD yourself",
			s.Resource, ManagedBy, Maker, ErrForeign)
	}
	return nil
}

// owns says whether a namespace is the scope's owner's; what it does not know may be anybody's.
func (s Scope) owns(there *corev1.Namespace) error {
	if there.Labels[ManagedBy] != Maker {
		return fmt.Errorf("the namespace %s has no label %s=%s: %w; give another --learner NAME, which has a namespace of its own, or remove that one yourself",
			there.Name, ManagedBy, Maker, ErrForeign)
	}
	owner, owned := there.Annotations[OwnerAnnotation]
	if !owned && s.Learner == "" {
		return nil // it was made where nobody else was to be expected, such as on one's own kind cluster
	}
	if owner != s.Owner {
		what := fmt.Sprintf("the learner's name %s is", s.Learner)
		if s.Learner == "" {
			what = "the lab without a learner's name on this cluster is"
		}
		return fmt.Errorf("%s %w (the namespace %s has another id in %s than your %s); give --learner with a name of your own; "+
			"if it is yours from another machine, bring that file over; if nobody needs it, remove it there",
			what, ErrTaken, there.Name, OwnerAnnotation, idPath())
	}
	return nil
}

func idPath() string {
	dir, err := StateDir()
	if err != nil {
		return idName
	}
	return filepath.Join(dir, idName)
}

// MakeNamespace makes the scope's namespace where it is missing, and waits where one of that name is still being deleted.
// One that is there and not its owner's is ErrForeign or ErrTaken; without an owner, any will do.
func MakeNamespace(ctx context.Context, config *rest.Config, s Scope) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	spaces := client.CoreV1().Namespaces()
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace, Labels: s.Labels()}}
	if s.Owner != "" {
		wanted.Annotations = map[string]string{OwnerAnnotation: s.Owner}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, namespaceTimeout, errors.New("not done after "+namespaceTimeout.String()))
	defer cancel()
	err = pollEvery(ctx, namespaceInterval, func() error {
		there, err := spaces.Get(ctx, s.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			there, err = spaces.Create(ctx, wanted, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return errNotYet // whose it is will be seen
			}
		}
		switch {
		case err != nil:
			return err
		case there.DeletionTimestamp != nil:
			return errNotYet
		case s.Owner != "":
			return s.owns(there)
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrTaken) {
		return fmt.Errorf("create the namespace %s: %w", s.Namespace, err)
	}
	return err
}

// namespaceTimeout is how long a namespace may take to be deleted, namespaceInterval how often it is looked.
const (
	namespaceTimeout  = time.Minute
	namespaceInterval = 100 * time.Millisecond
)

// RemoveNamespace deletes the scope's namespace, and returns when it is gone. One that is not the lab's, or not its
// owner's, is left alone.
func RemoveNamespace(ctx context.Context, c Cluster, s Scope) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	spaces := client.CoreV1().Namespaces()
	there, err := spaces.Get(ctx, s.Namespace, metav1.GetOptions{})
	if err == nil && (there.Labels[ManagedBy] != Maker || s.Owner != "" && s.owns(there) != nil) {
		return nil
	}
	if err == nil {
		err = spaces.Delete(ctx, s.Namespace, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &there.UID}})
	}
	if err == nil || apierrors.IsConflict(err) { // it is being deleted already
		ctx, cancel := context.WithTimeoutCause(ctx, namespaceTimeout, errors.New("not done after "+namespaceTimeout.String()))
		defer cancel()
		err = pollEvery(ctx, namespaceInterval, func() error {
			now, err := spaces.Get(ctx, s.Namespace, metav1.GetOptions{})
			if err == nil && now.UID == there.UID {
				err = errNotYet
			}
			return err
		})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the namespace %s: %w", s.Namespace, err)
	}
	return nil
}

// Clean removes all that a lab made, its namespace included, from a cluster that goes on; ErrForeign or ErrTaken where it is
// not its owner's, and then nothing was touched.
func Clean(ctx context.Context, c Cluster, s Scope) error {
	if err := CheckClaim(ctx, c, s); err != nil {
		return err
	}
	if err := c.Reset(ctx, s); err != nil || s.Owner == "" {
		return err
	}
	return RemoveNamespace(ctx, c, s)
}
