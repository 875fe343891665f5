-- Operations on a whole project name its default branch, like those of the newest version. Earlier
-- versions stored no branch for them, and none for the deletion of a snapshot.
UPDATE operations SET branch_id = (
    SELECT id FROM branches
    WHERE project_id = operations.project_id AND is_default AND deleted_at IS NULL
) WHERE branch_id IS NULL;
