-- The monitoring view of the console filters the operations of a project and of a branch. Each
-- filter reads the newest matching rows from an index, so rare values are as fast as common ones.
CREATE INDEX operations_by_action ON operations (project_id, action, outcome, position);
CREATE INDEX operations_by_branch ON operations (branch_id, action, outcome, position);
