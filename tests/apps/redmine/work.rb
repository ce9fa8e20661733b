# frozen_string_literal: true

# Redmine at work through its REST interface, its pages and its models, in one process:
# `rails runner work.rb`. Writes a JSON object of outcomes. The clock stands still and is moved by a
# minute before each step, so that rows hold the same times on every run.

require 'active_support/testing/time_helpers'
require 'action_dispatch/testing/integration'
include ActiveSupport::Testing::TimeHelpers

$found = {}
$complaints = []
$clock = Time.utc(2024, 3, 1, 12)
ActiveSupport::Notifications.subscribe('sql.active_record') do |*, payload|
  error = payload[:exception]
  $complaints << error.join(': ').lines.first.strip if error
end

def step(name)
  $clock += 60
  travel_to $clock
  $found[name] = yield
rescue StandardError => e
  $found[name] = "#{e.class}: #{e.message}".lines.first.strip
end

# A visitor with an account's key.
class Visitor
  def initialize(key = nil)
    @session = ActionDispatch::Integration::Session.new(Rails.application)
    @session.host! 'localhost'
    @headers = key ? { 'X-Redmine-API-Key' => key } : {}
  end

  attr_reader :session

  # The status and the JSON of an answer; the JSON without what differs from run to run.
  def call(method, path, fields = nil)
    arguments = { headers: @headers }
    arguments.update(method == :get ? { params: fields } : { params: fields, as: :json }) if fields
    @session.public_send(method, path, **arguments)
    body = @session.response.body
    [@session.response.status, body.start_with?('{') ? tidy(JSON.parse(body)) : body.strip]
  end

  def upload(name, content)
    @session.post("/uploads.json?filename=#{CGI.escape(name)}", params: content, headers: @headers.merge('CONTENT_TYPE' => 'application/octet-stream'))
    JSON.parse(@session.response.body).dig('upload', 'token')
  end

  # The status and the words of a page's content.
  def page(path, fields = nil)
    @session.get(path, params: fields)
    body = @session.response.body
    content = Nokogiri::HTML(body).at('#content')
    content&.css('script, style, #filters-table, .filters-table, fieldset#options').to_a.each(&:remove)
    [@session.response.status, (content ? content.text : body).gsub(/\s+/, ' ').strip]
  end

  def form(method, path, fields)
    token = Nokogiri::HTML(@session.response.body).at('meta[name=csrf-token]')&.[]('content')
    @session.public_send(method, path, params: fields.merge(authenticity_token: token))
    [@session.response.status, @session.response.location.to_s.sub('http://localhost', '')]
  end

  private

  def tidy(value)
    case value
    when Hash then value.except('api_key', 'token').transform_values { |v| tidy(v) }
    when Array then value.map { |v| tidy(v) }
    else value
    end
  end
end

travel_to $clock
Setting.rest_api_enabled = '1'
Setting.jsonp_enabled = '0'
Setting.cross_project_issue_relations = '1'
Setting.login_required = '0'
Setting.notified_events = []
Setting.text_formatting = 'textile'
[Principal, EmailAddress].each { |rows| rows.update_all(created_on: $clock, updated_on: $clock) }
admin = User.find_by_login('admin')
admin.update!(must_change_passwd: false, password: 'a long password', password_confirmation: 'a long password')
api = Visitor.new(admin.api_key)
guest = Visitor.new

# Custom fields of every format, for issues, projects, users and time entries.
fields = {}
step('custom fields') do
  formats = [['string', {}], ['text', {}], ['int', {}], ['float', {}], ['bool', {}], ['date', {}], ['link', {}],
             ['list', { possible_values: ['one', 'zwei', "drei's", '😀'], multiple: true }], ['user', {}], ['version', {}]]
  formats.each do |format, more|
    field = IssueCustomField.create!(name: "Feld #{format}", field_format: format, is_for_all: true, is_filter: true, searchable: %w[string text list].include?(format),
                                     tracker_ids: Tracker.pluck(:id), **more)
    fields[format] = field.id
  end
  fields['project'] = ProjectCustomField.create!(name: 'Kunde', field_format: 'string', is_filter: true, searchable: true).id
  fields['account'] = UserCustomField.create!(name: 'Telefon', field_format: 'string', is_filter: true).id
  fields['time'] = TimeEntryCustomField.create!(name: 'Kostenstelle', field_format: 'int', is_filter: true).id
  fields
end
step('list custom fields') { api.call(:get, '/custom_fields.json') }
%w[trackers issue_statuses roles enumerations/issue_priorities enumerations/time_entry_activities].each { |name| step("list #{name}") { api.call(:get, "/#{name}.json") } }
step('roles with a name') { api.call(:get, '/roles/3.json') }

# Accounts and groups.
people = [%w[aenne Änne Müller], %w[ohara Zoë O'Hara], %w[ivan Иван Иванов], %w[hanako 花子 山田], %w[reporter Rita Reporter]]
people.each do |login, first, last|
  step("create #{login}") do
    api.call(:post, '/users.json', user: { login: login, firstname: first, lastname: last, mail: "#{login}@example.com", password: 'secret words', custom_fields: [{ id: fields['account'], value: "+41 #{login}" }] })
  end
end
step('create the same account') { api.call(:post, '/users.json', user: { login: 'AENNE', firstname: 'A', lastname: 'B', mail: 'Aenne@Example.com', password: 'secret words' }) }
step('list accounts') { api.call(:get, '/users.json', limit: 3, offset: 1) }
%w[müller MUELLER muller иван 山田 o'h % _].each { |name| step("accounts named #{name}") { api.call(:get, '/users.json', name: name) } }
accounts = User.where(login: people.map(&:first)).order(:id).pluck(:login, :id).to_h
step('change an account') { api.call(:put, "/users/#{accounts['ivan']}.json", user: { lastname: 'Петров', mail: 'petrov@example.com' }) }
step('create a group') { api.call(:post, '/groups.json', group: { name: 'Entwickler', user_ids: [accounts['aenne'], accounts['ivan']] }) }
step('create the same group') { api.call(:post, '/groups.json', group: { name: 'entwickler' }) }
group = Group.givable.first.id
step('add to a group') { api.call(:post, "/groups/#{group}/users.json", user_id: accounts['hanako']) }
step('a group') { api.call(:get, "/groups/#{group}.json", include: 'users,memberships') }

# Projects as nested sets.
projects = {}
[['main', 'Hauptprojekt', nil], ['sub', 'Unterprojekt', 'main'], ['subsub', 'Ünter-Unterprojekt', 'sub'], ['aside', 'Anderes', nil], ['gone', 'Vergänglich', 'main']].each do |identifier, name, parent|
  step("create #{identifier}") do
    answer = api.call(:post, '/projects.json', project: { name: name, identifier: identifier, description: "h1. #{name} 😀", parent_id: projects[parent], inherit_members: parent.present?,
                                                          enabled_module_names: Redmine::AccessControl.available_project_modules, tracker_ids: Tracker.pluck(:id),
                                                          custom_fields: [{ id: fields['project'], value: "Kunde #{name}" }] })
    projects[identifier] = answer.dig(1, 'project', 'id')
    answer
  end
end
step('create the same project') { api.call(:post, '/projects.json', project: { name: 'x', identifier: 'main' }) }
step('list projects') { api.call(:get, '/projects.json', include: 'trackers,issue_categories,enabled_modules') }
step('nested set') { Project.order(:id).pluck(:id, :parent_id, :lft, :rgt) }
step('move a project') { api.call(:put, '/projects/sub.json', project: { parent_id: projects['aside'] }) }
step('nested set after a move') { Project.order(:id).pluck(:id, :parent_id, :lft, :rgt) }
step('close a project') { api.call(:put, '/projects/aside/close.json') }
step('open a project') { api.call(:put, '/projects/aside/reopen.json') }
step('archive a project') { Project.find('aside').archive }
step('unarchive a project') { [Project.find('aside').unarchive, Project.find('subsub').unarchive] }
step('unarchive the middle') { [Project.find('sub').unarchive, Project.find('subsub').unarchive] }

# Members, versions, categories.
manager, developer, reporter = Role.givable.order(:position).pluck(:id)
step('members') do
  [[group, [developer]], [accounts['ohara'], [manager, developer]], [accounts['reporter'], [reporter]]].map { |id, roles| api.call(:post, '/projects/main/memberships.json', membership: { user_id: id, role_ids: roles }) }
end
step('the same member') { api.call(:post, '/projects/main/memberships.json', membership: { user_id: accounts['ohara'], role_ids: [reporter] }) }
step('list members') { api.call(:get, '/projects/main/memberships.json') }
step('inherited members') { Member.order(:id).map { |m| [m.project_id, m.user_id, m.member_roles.order(:id).pluck(:role_id, :inherited_from)] } }
versions = %w[1.0 1.1 2.0].map do |name|
  step("version #{name}") { api.call(:post, '/projects/main/versions.json', version: { name: name, status: 'open', sharing: 'tree', due_date: "2024-0#{name.to_i + 3}-15" }) }.dig(1, 'version', 'id')
end
step('the same version') { api.call(:post, '/projects/main/versions.json', version: { name: '1.0' }) }
categories = ['Oberfläche', 'Kern'].map { |name| step("category #{name}") { api.call(:post, '/projects/main/issue_categories.json', issue_category: { name: name, assigned_to_id: accounts['ohara'] }) }.dig(1, 'issue_category', 'id') }
step('the same category') { api.call(:post, '/projects/main/issue_categories.json', issue_category: { name: 'OBERFLÄCHE' }) }

# Issues.
words = ['Größe der Schrift', 'Crash on start', "It's slow", '100% CPU', 'snake_case', 'back\\slash', '日本語の問題', 'Проблема', '😀 emoji', 'straße', 'STRASSE', 'naïve café']
issues = words.each_with_index.map do |subject, n|
  step("issue #{subject}") do
    api.call(:post, '/issues.json', issue: {
               project_id: n.even? ? 'main' : 'subsub', tracker_id: 1 + (n % 3), priority_id: IssuePriority.order(:position).pluck(:id)[n % 5], subject: subject, description: "#{subject} " * (n + 1),
               category_id: n.even? ? categories[n % 4 / 2] : nil, fixed_version_id: n.even? ? versions[n % 3] : nil, assigned_to_id: n.even? ? accounts['ohara'] : nil, estimated_hours: n * 1.25,
               start_date: "2024-02-#{10 + n}", due_date: n % 3 == 0 ? "2024-03-#{10 + n}" : nil, done_ratio: n * 10 % 100, is_private: n == 4, watcher_user_ids: [accounts['aenne']],
               custom_fields: [{ id: fields['string'], value: "text #{subject}" }, { id: fields['int'], value: (n - 5).to_s }, { id: fields['float'], value: (n / 7.0).round(4).to_s }, { id: fields['bool'], value: (n % 2).to_s },
                               { id: fields['date'], value: "2024-01-#{10 + n}" }, { id: fields['list'], value: n.even? ? ['one', '😀'] : ["drei's"] }, { id: fields['text'], value: "#{subject}\nlong" }]
             })
  end.dig(1, 'issue', 'id')
end
step('an issue without a subject') { api.call(:post, '/issues.json', issue: { project_id: 'main', subject: '' }) }
step('an issue with a long subject') { api.call(:post, '/issues.json', issue: { project_id: 'main', subject: 'ü' * 256 }) }
step('an issue with wrong values') { api.call(:post, '/issues.json', issue: { project_id: 'main', subject: 'x', start_date: '2024-02-30', custom_fields: [{ id: fields['int'], value: 'abc' }, { id: fields['list'], value: ['none'] }] }) }

# Trees of issues, relations, changes with journals.
step('children') { [1, 2].map { |n| api.call(:post, '/issues.json', issue: { project_id: 'main', subject: "child #{n}", parent_issue_id: issues[0], estimated_hours: n, done_ratio: 50 * n, tracker_id: 1 }) } }
children = Issue.where(parent_id: issues[0]).order(:id).pluck(:id)
step('grandchild') { api.call(:post, '/issues.json', issue: { project_id: 'main', subject: 'grandchild', parent_issue_id: children[0], due_date: '2024-05-01', tracker_id: 2 }) }
step('tree') { Issue.order(:id).pluck(:id, :parent_id, :root_id, :lft, :rgt, :done_ratio, :estimated_hours, :due_date) }
step('move a child') { api.call(:put, "/issues/#{children[0]}.json", issue: { parent_issue_id: issues[2] }) }
step('a circle of parents') { api.call(:put, "/issues/#{issues[2]}.json", issue: { parent_issue_id: children[0] }) }
step('tree after a move') { Issue.order(:id).pluck(:id, :parent_id, :root_id, :lft, :rgt) }
step('relations') { [[0, 2, 'blocks'], [2, 4, 'precedes'], [4, 6, 'relates'], [6, 0, 'duplicates']].map { |a, b, type| api.call(:post, "/issues/#{issues[a]}/relations.json", relation: { issue_to_id: issues[b], relation_type: type, delay: 2 }) } }
step('a circle of relations') { api.call(:post, "/issues/#{issues[4]}/relations.json", relation: { issue_to_id: issues[2], relation_type: 'precedes' }) }
step('the same relation') { api.call(:post, "/issues/#{issues[0]}/relations.json", relation: { issue_to_id: issues[2], relation_type: 'blocks' }) }
step('dates that a relation moved') { Issue.where(id: issues).order(:id).pluck(:id, :start_date, :due_date) }
step('notes') { api.call(:put, "/issues/#{issues[0]}.json", issue: { notes: 'Erste Notiz 😀', status_id: 2, priority_id: IssuePriority.order(:position).last.id, custom_fields: [{ id: fields['string'], value: 'geändert' }, { id: fields['list'], value: %w[zwei] }] }) }
step('private notes') { api.call(:put, "/issues/#{issues[0]}.json", issue: { notes: 'geheim', private_notes: true, assigned_to_id: accounts['aenne'] }) }
step('close a blocked issue') { api.call(:put, "/issues/#{issues[2]}.json", issue: { status_id: 5 }) }
step('stale') { api.call(:put, "/issues/#{issues[0]}.json", issue: { lock_version: 1, subject: 'stale' }) }
step('stale object') do
  one, other = Issue.find(issues[1]), Issue.find(issues[1])
  one.update!(description: 'first')
  other.update!(description: 'second')
end
step('copy an issue') { Issue.new.copy_from(Issue.find(issues[0])).tap(&:save!).attributes.slice('id', 'subject', 'project_id', 'root_id', 'lft', 'rgt') }
step('move an issue to a project') { api.call(:put, "/issues/#{issues[8]}.json", issue: { project_id: projects['aside'], fixed_version_id: '', category_id: '' }) }
token = api.upload('größe.txt', 'some text 😀' * 20)
step('attach') { api.call(:put, "/issues/#{issues[0]}.json", issue: { uploads: [{ token: token, filename: 'größe.txt', description: 'Datei', content_type: 'text/plain' }] }) }
step('an issue in full') { api.call(:get, "/issues/#{issues[0]}.json", include: 'children,attachments,relations,journals,watchers,allowed_statuses') }
step('a missing issue') { api.call(:get, '/issues/99999.json') }
step('a private issue for a guest') { guest.call(:get, "/issues/#{issues[4]}.json") }

# Lists by filters, orders and groups.
filters = {
  'open' => { status_id: 'open' }, 'closed' => { status_id: 'closed' }, 'all' => { status_id: '*', sort: 'id' }, 'assigned' => { assigned_to_id: accounts['ohara'], sort: 'priority:desc,id' },
  'of a version' => { fixed_version_id: versions[0], sort: 'id' }, 'of sub-projects' => { project_id: 'aside', status_id: '*', sort: 'id' }, 'without sub-projects' => { project_id: 'main', subproject_id: '!*', sort: 'id' },
  'by subject' => { subject: '~strasse', status_id: '*', sort: 'id' }, 'by a wild subject' => { subject: '~100%', status_id: '*' }, 'by an underscore' => { subject: '~e_c', status_id: '*' }, 'by a backslash' => { subject: '~\\', status_id: '*' },
  'by any' => { any_searchable: '~größe', status_id: '*', sort: 'id' }, 'by start' => { start_date: '><2024-02-12|2024-02-18', status_id: '*', sort: 'start_date' }, 'by hours' => { estimated_hours: '>=5', status_id: '*', sort: 'estimated_hours:desc' },
  'by several' => { tracker_id: '1|2', priority_id: '3|4', status_id: '*', sort: 'tracker,priority:desc,id' }, 'by text' => { "cf_#{fields['string']}" => '~GEÄNDERT', status_id: '*' },
  'by list' => { "cf_#{fields['list']}" => '😀', status_id: '*', sort: 'id' }, 'by int' => { "cf_#{fields['int']}" => '><-2|3', status_id: '*', sort: "cf_#{fields['int']}" },
  'by float' => { "cf_#{fields['float']}" => '>=0.5', status_id: '*', sort: "cf_#{fields['float']}:desc" }, 'by date' => { "cf_#{fields['date']}" => '<=2024-01-14', status_id: '*', sort: "cf_#{fields['date']}:desc" },
  'by bool' => { "cf_#{fields['bool']}" => '1', status_id: '*', sort: "cf_#{fields['string']}" }, 'by parent' => { parent_id: issues[0], status_id: '*' }, 'by tree' => { parent_id: "~#{issues[0]}", status_id: '*', sort: 'id' },
  'by relation' => { blocks: '*', status_id: '*', sort: 'id' }, 'by related' => { relates: issues[6].to_s, status_id: '*' }, 'by watcher' => { watcher_id: accounts['aenne'], status_id: '*', sort: 'id:desc', limit: 3, offset: 2 },
  'by attachment' => { attachment: '~größe', status_id: '*' }, 'updated' => { updated_on: '>=2024-03-01T12:30:00Z', status_id: '*', sort: 'updated_on:desc', limit: 5 }, 'by last updater' => { last_updated_by: '1', status_id: '*', sort: 'id' },
  'by role' => { assigned_to_role: manager.to_s, status_id: '*', sort: 'id' }, 'by group' => { member_of_group: group.to_s, status_id: '*', sort: 'id' }, 'due never' => { due_date: '!*', status_id: '*', sort: 'id' }
}
filters.each do |name, given|
  step("issues #{name}") do
    status, body = api.call(:get, '/issues.json', given)
    [status, body['total_count'], body['issues']&.map { |i| [i['id'], i['subject']] } || body]
  end
end
step('issues for a guest') { guest.call(:get, '/issues.json', sort: 'id')[1].values_at('total_count') }
step('grouped') do
  %w[status tracker priority project assigned_to category fixed_version author done_ratio].to_h do |column|
    query = IssueQuery.new(name: '_', group_by: column, filters: {})
    query.totalable_names = %i[estimated_hours spent_hours]
    User.current = admin
    [column, [query.result_count_by_group.to_a.map { |k, v| [k.to_s, v] }.sort, query.totals_by_group.map { |c, sums| [c.name, sums.map { |k, v| [k.to_s, v.to_s] }.sort] }, query.totals.map { |c, v| [c.name, v.to_s] }]]
  end
end
step('grouped by a custom field') { IssueQuery.new(name: '_', group_by: "cf_#{fields['bool']}", filters: {}).result_count_by_group.to_a.map { |k, v| [k.to_s, v] }.sort }
step('query') { api.call(:get, '/queries.json') }

# Time, wiki, news, documents, forums.
step('time entries') { issues.first(5).each_with_index.map { |id, n| api.call(:post, '/time_entries.json', time_entry: { issue_id: id, hours: 0.75 * (n + 1), activity_id: TimeEntryActivity.first.id, comments: "größe #{n}", spent_on: "2024-02-2#{n}", custom_fields: [{ id: fields['time'], value: (100 + n).to_s }] }) } }
step('time for a project') { api.call(:post, '/time_entries.json', time_entry: { project_id: projects['main'], hours: '1:20', activity_id: TimeEntryActivity.last.id }) }
step('wrong time') { api.call(:post, '/time_entries.json', time_entry: { project_id: projects['main'], hours: 'many' }) }
step('list time entries') { api.call(:get, '/time_entries.json', project_id: 'main', from: '2024-02-21', to: '2024-02-24') }
step('change a time entry') { api.call(:put, '/time_entries/1.json', time_entry: { hours: 7.333333 }) }
step('hours') { [TimeEntry.sum(:hours), TimeEntry.average(:hours), TimeEntry.group(:spent_on).sum(:hours).map { |k, v| [k, v] }, Issue.find(issues[0]).total_spent_hours] }
step('wiki') { %w[Wiki Größe Zweite].map { |title| api.call(:put, "/projects/main/wiki/#{CGI.escape(title)}.json", wiki_page: { text: "h1. #{title}\n\nSee [[Größe]] and ##{issues[0]} 😀", comments: 'neu', parent_title: title == 'Wiki' ? nil : 'Wiki' }) } }
step('change a page') { api.call(:put, '/projects/main/wiki/Wiki.json', wiki_page: { text: "h1. Changed\n\n{{toc}}\n\nh2. More", version: 1 }) }
step('a stale page') { api.call(:put, '/projects/main/wiki/Wiki.json', wiki_page: { text: 'x', version: 1 }) }
step('list pages') { api.call(:get, '/projects/main/wiki/index.json') }
step('an old page') { api.call(:get, '/projects/main/wiki/Wiki/1.json') }
step('rename a page') { WikiPage.find_by_title('Zweite').tap { |p| p.redirect_existing_links = '1'; p.title = 'Dritte'; p.save! } && WikiRedirect.pluck(:title, :redirects_to) }
[1, 2].each { |n| step("news #{n}") { api.call(:post, '/projects/main/news.json', news: { title: "Neuigkeit #{n}", summary: 'kurz', description: 'lang ' * 50 }) } }
step('list news') { api.call(:get, '/news.json') }
step('comment') { News.first.comments.create!(author: admin, comments: 'Schön').attributes.slice('id', 'comments') }
step('documents') { Project.find('main').documents.create!(category: DocumentCategory.first, title: 'Handbuch', description: 'Größe 😀').id }
step('forums') do
  board = Project.find('main').boards.create!(name: 'Forum', description: 'Alles')
  topic = board.messages.create!(author: admin, subject: 'Frage zur Größe', content: 'Text')
  2.times { |n| topic.children.create!(board: board, author: admin, subject: "RE: #{n}", content: "Antwort #{n}") }
  [board.reload.attributes.slice('topics_count', 'messages_count', 'last_message_id'), topic.reload.replies_count, topic.last_reply_id]
end

# Searches.
['größe', 'GRÖSSE', 'strasse', 'emoji 😀', '100%', '_case', "it's", '"crash on"', 'проблема', '日本語', 'geheim', 'nothing like this', 'antwort', 'h1'].each do |words|
  step("search #{words}") do
    status, body = api.call(:get, '/search.json', q: words, limit: 20)
    [status, body['total_count'], body['results']&.map { |r| r.values_at('id', 'type', 'title') }]
  end
end
step('search in titles') { api.call(:get, '/projects/main/search.json', q: 'größe', titles_only: 1, scope: 'subprojects')[1].values_at('total_count') }
step('search attachments') { api.call(:get, '/search.json', q: 'datei', attachments: 'only')[1] }
step('search open issues') { api.call(:get, '/search.json', q: 'child', open_issues: 1, issues: 1)[1].values_at('total_count') }

# Pages of a browser.
browser = Visitor.new
step('sign in') { browser.page('/login') && browser.form(:post, '/login', username: 'admin', password: 'a long password') }
['/', '/my/page', '/projects', '/projects/main', '/projects/main/activity?from=2024-03-02', '/projects/main/roadmap?completed=1', '/projects/main/issues?set_filter=1&sort=id', '/projects/main/issues?set_filter=1&group_by=status&sort=id&t[]=estimated_hours&t[]=spent_hours',
 '/projects/main/issues/gantt?month=2&year=2024', '/projects/main/issues/calendar?month=3&year=2024', '/projects/main/issues/report', '/projects/main/issues/report/version', '/projects/main/time_entries?set_filter=1', '/projects/main/time_entries/report?criteria[]=project&criteria[]=issue&columns=month',
 '/time_entries/report?criteria[]=user&criteria[]=activity&columns=week', "/projects/main/time_entries/report?criteria[]=cf_#{fields['list']}&columns=year", '/projects/main/wiki', '/projects/main/wiki/Wiki/history', '/projects/main/wiki/Wiki/diff?version=2&version_from=1', '/projects/main/wiki/date_index', '/projects/main/news',
 '/projects/main/documents', '/projects/main/boards', '/boards/1/topics/1', '/projects/main/files', '/projects/main/settings', "/versions/#{versions[0]}", "/issues/#{issues[0]}", "/issues/#{issues[0]}?tab=time_entries", "/users/#{accounts['ohara']}", '/users?status=1', '/groups', '/roles', '/roles/permissions', '/trackers', '/issue_statuses',
 '/workflows/edit?role_id[]=1&tracker_id[]=1', '/custom_fields', '/enumerations', '/admin/projects', '/search?q=gr%C3%B6%C3%9Fe', '/projects/main/issues?set_filter=1&f[]=subject&op[subject]=~&v[subject][]=crash&f[]=', '/auth_sources'].each do |path|
  step("page #{path.gsub(/\d{3,}/, 'N')}") { browser.page(path) }
end
step('issues as CSV') { browser.page('/projects/main/issues.csv?set_filter=1&sort=id&c[]=all_inline') }
step('time entries as CSV') { browser.page('/projects/main/time_entries.csv?set_filter=1') }
step('issues as Atom') { browser.page('/projects/main/issues.atom?sort=id')[0] }
step('save a query') { browser.page('/projects/main/queries/new') && browser.form(:post, '/projects/main/queries', query: { name: 'Meine Abfrage', visibility: '2', group_by: 'tracker' }, f: %w[status_id subject], op: { status_id: '*', subject: '~' }, v: { subject: ['a'] }, c: %w[subject status]) }
step('run a query') { browser.page('/projects/main/issues?query_id=1') }
step('bulk edit') { browser.page("/issues/bulk_edit?#{children.map { |id| "ids[]=#{id}" }.join('&')}") && browser.form(:post, '/issues/bulk_update', ids: children, notes: 'alle', issue: { priority_id: IssuePriority.order(:position).first.id, custom_field_values: { fields['bool'] => '1' } }) }
step('copy a project') { Project.copy_from('main').tap { |p| p.name, p.identifier = 'Kopie', 'copy' }.then { |p| [p.copy(Project.find('main')), p.issues.count, p.versions.count, p.members.count, p.wiki.pages.count] } }
step('anonymous page') { guest.page('/projects/main') }

# ActiveRecord by itself, on Redmine's models.
step('includes') { Issue.includes(:project, :custom_values, :watchers).references(:projects).where('projects.status = 1').order('issues.id DESC').limit(3).map { |i| [i.id, i.project.name, i.custom_values.size] } }
step('having') { CustomValue.group(:custom_field_id).having('COUNT(DISTINCT value) > 2').order(Arel.sql('COUNT(*) DESC, custom_field_id')).count.to_a }
step('exists') { [Issue.where(Journal.where('journals.journalized_id = issues.id').arel.exists).order(:id).pluck(:id), Issue.where.not(id: TimeEntry.select(:issue_id).where.not(issue_id: nil)).count] }
step('or') { Issue.where(tracker_id: 1).or(Issue.where(priority_id: IssuePriority.last.id)).where.not(subject: nil).order(:id).pluck(:id) }
step('batches') { Issue.in_batches(of: 4).map { |b| b.pluck(:id).size } }
step('update all') { Issue.where(tracker_id: 3).update_all(['done_ratio = LEAST(done_ratio + ?, 100), description = CONCAT(description, ?)', 15, ' +']) }
step('lock') { Issue.transaction { Issue.lock.where(project_id: projects['main']).order(:id).pluck(:id).size } }
step('rolled back') { Issue.transaction { Issue.first.update_columns(subject: 'lost'); raise ActiveRecord::Rollback }.inspect + Issue.first.subject }
step('savepoint') do
  Issue.transaction do
    Issue.first.update_columns(subject: 'Größe behalten')
    Issue.transaction(requires_new: true) { Issue.first.update_columns(subject: 'lost'); raise ActiveRecord::Rollback }
  end
  Issue.first.subject
end
step('unique') { EmailAddress.connection.execute('INSERT INTO members (user_id, project_id) SELECT user_id, project_id FROM members ORDER BY id LIMIT 1') }
step('too long') { Tracker.new(name: 'x' * 300, default_status_id: 1).save(validate: false) }
step('not null') { Tracker.connection.execute('INSERT INTO trackers (name) VALUES (NULL)') }
step('calculations') { [Issue.average(:estimated_hours), Issue.minimum(:start_date), Issue.maximum(:updated_on), Issue.sum(:done_ratio), Issue.distinct.count(:project_id), Issue.group(:project_id, :tracker_id).count.to_a] }
step('dates') { Issue.group('DATE(created_on)').count.map { |k, v| [k.to_s, v] } + Issue.group('EXTRACT(HOUR FROM updated_on)').count.to_a }

# Deletes that lead to others.
def counts
  ActiveRecord::Base.connection.tables.sort.to_h { |t| [t, ActiveRecord::Base.connection.select_value("SELECT COUNT(*) FROM #{ActiveRecord::Base.connection.quote_table_name(t)}")] }
end
step('rows before') { counts }
step('delete a note') { api.call(:put, '/journals/1.json', journal: { notes: '' }) }
step('delete a relation') { api.call(:delete, '/relations/1.json') }
step('delete an attachment') { api.call(:delete, '/attachments/1.json') }
step('delete a page') { api.call(:delete, '/projects/main/wiki/Wiki.json') }
step('delete a topic') { Message.first.destroy.id }
step('delete an issue') { api.call(:delete, "/issues/#{issues[0]}.json") }
step('tree after a deletion') { Issue.order(:id).pluck(:id, :parent_id, :root_id, :lft, :rgt) }
step('delete a version in use') { api.call(:delete, "/versions/#{versions[0]}.json") }
step('delete an unused version') { Issue.where(fixed_version_id: versions[1]).update_all(fixed_version_id: nil) && api.call(:delete, "/versions/#{versions[1]}.json") }
step('delete a category') { api.call(:delete, "/issue_categories/#{categories[0]}.json", reassign_to_id: categories[1]) }
step('delete a custom field') { IssueCustomField.find(fields['list']).destroy.id }
step('delete an account') { api.call(:delete, "/users/#{accounts['ohara']}.json") }
step('delete a group') { api.call(:delete, "/groups/#{group}.json") }
step('delete a role in use') { Role.find(reporter).destroy }
step('delete a project') { api.call(:delete, '/projects/aside.json') }
step('delete the tree') { api.call(:delete, '/projects/main.json') }
step('rows after') { counts }
step('nested set at the end') { Project.order(:id).pluck(:id, :parent_id, :lft, :rgt) }

$found['errors of the database'] = $complaints.uniq
puts JSON.generate($found)
